package proc

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object: it holds the child and whatever that starts, and ends
// them when its last handle is closed, also by the death of this process. A
// job that could not be made is 0; the group is then the child alone.
type group struct{ job windows.Handle }

func (g *group) adopt(pid int) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	if fillJob(job, uint32(pid)) != nil {
		windows.CloseHandle(job)
		return
	}
	g.job = job
}

func fillJob(job windows.Handle, pid uint32) error {
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return err
	}
	child, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(child)
	return windows.AssignProcessToJobObject(job, child)
}

func (g *group) kill(pid int) error {
	if g.job == 0 {
		return signalProcess(pid, os.Kill)
	}
	return windows.TerminateJobObject(g.job, 1)
}

// end ends what an exited child left of its group.
func (g *group) end(int) {
	if g.job != 0 {
		windows.CloseHandle(g.job)
		g.job = 0
	}
}

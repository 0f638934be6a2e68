package peer
import ("testing";"path/filepath";"syscall";"time")
func TestZZ(t *testing.T){
 red:=0
 for i:=0;i<400;i++{
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "green.ndjson"), entries(green...))
	cfg := Config{Transcript: "green.ndjson", Report: "report.json", State:"state", Workspace: workspace, IdleTimeout: time.Minute}
	c := &client{t: t, ops: faithful(green)}
	c.after("< turn/completed", signals(syscall.SIGKILL))
	p := startPeer(t, dir, cfg)
	if err:=run(p, c.ops);err!=nil{t.Fatal(err)}
	p.wait(t)
	if r:=readReport(t,dir,"report.json"); r.Verdict!="passed"{red++}
 }
 t.Log("red",red)
}

package scenario

import (
	"slices"
	"strings"
	"testing"
)

// claim is one thing that must be so, and what of it is held: every line must
// be evidence of the scenario. See evidence for how lines read.
type claim struct {
	scenario, claim string
	held            []string
}

// checklist is what each of the ten scenarios is for.
var checklist = []claim{
	{"simple", "one run, the first, completes", []string{`runs.#.ordinal equals [1]`, `runs.#.status equals ["completed"]`}},
	{"simple", "its root node and the answer's are all there is", []string{`nodes.#.kind equals ["root_turn","assistant_message"]`}},
	{"simple", "one turn, asked for once", []string{`providerTurns.#.status equals ["completed"]`, `wire codex: turn/start x1`, `wire claude: prompt.offer x1`, `wire cursor: run.start x1`}},
	{"simple", "the user speaks, the agent says what was asked for", []string{`messages.#.role equals ["user","assistant"]`, `messages.1.text contains "fixture simple ok"`}},
	{"simple", "baseline and checkpoint are ready, and the run has its own", []string{`checkpoints.#.ordinalWithinScope equals [0,1]`, `checkpoints.#.appRunOrdinal equals [null,1]`, `checkpoints.#.status equals ["ready","ready"]`, `runs.0.checkpointId exists`}},

	{"multi_turn", "two runs complete", []string{`runs.#.ordinal equals [1,2]`, `runs.#.status equals ["completed","completed"]`}},
	{"multi_turn", "words alternate, both of the user's start a turn", []string{`messages.#.role equals ["user","assistant","user","assistant"]`, `turnItems.#(type=="user_message")#.inputIntent equals ["turn_start","turn_start"]`}},
	{"multi_turn", "one provider thread serves both", []string{`providerThreads.# equals 1`, `providerThreads.0.firstRunOrdinal equals 1`, `providerThreads.0.lastRunOrdinal equals 2`}},
	{"multi_turn", "in one process", []string{`wire claude: query.open x1`, `wire claude: prompt.offer x2`, `wire codex: thread/start x1`, `wire cursor: agent.open x1`, `wire cursor: run.start x2`}},
	{"multi_turn_restart", "or in two, the second of which resumes", []string{`wire claude: query.open x2`, `wire codex: thread/resume x1`, `wire codex: thread/start x1`, `wire cursor: agent.open x2`, `providerThreads.# equals 1`}},

	{"message_steering", "one run, one attempt, one turn", []string{`runs.#.status equals ["completed"]`, `attempts.#.reason equals ["initial"]`, `providerTurns.#.status equals ["completed"]`}},
	{"message_steering", "the second message steers it and belongs to it", []string{`turnItems.#(type=="user_message")#.inputIntent equals ["turn_start","steer"]`, `messages.#(text=="Stop counting and respond with exactly: steered").runId matches run:.*:1`}},
	{"message_steering", "nobody is asked, and the steer is heard", []string{`runtimeRequests length 0`, `messages.#(text=="steered").role equals "assistant"`}},
	{"message_steering", "a provider that can't gets it in a second attempt", []string{`without activeSteering: attempts.#.status equals ["superseded","completed"]`, `without activeSteering: turnItems.#(type=="user_message")#.inputIntent equals ["turn_start","steer"]`, `order cursor: out run.cancel, in run.completed, out run.start`}},

	{"turn_interrupt", "the acknowledgement ends nothing", []string{`probe runs.0.status equals "running"`, `probe attempts.0.status equals "running"`, `probe turnItems.#(type=="run_interrupt_result") absent`, `order codex: out turn/interrupt, in turn/interrupt, in turn/completed`, `order claude: out query.interrupt, in query.interrupt, in result/error_during_execution`, `order cursor: out run.cancel, in run.completed, out run.start`}},
	{"turn_interrupt", "the turn's end interrupts run, attempt, root node and turn", []string{`runs.#.status equals ["interrupted","completed"]`, `attempts.#.status equals ["interrupted","completed"]`, `nodes.#(kind=="root_turn")#.status equals ["interrupted","completed"]`, `providerTurns.0.status one of "interrupted" "cancelled"`}},
	{"turn_interrupt", "the request stands before the result, which names it", []string{`probe turnItems.#(type=="run_interrupt_request").status equals "completed"`, `turnItems.#(type=="run_interrupt_result").status equals "interrupted"`, `turnItems.#(type=="run_interrupt_result").parentItemId matches turn-item:signal:.*:interrupt-request`}},
	{"turn_interrupt", "the thread is free for the next message", []string{`probe providerThreads.0.status equals "idle"`, `wire codex: turn/start x2`}},

	{"steering_restart_fallback", "one run of two attempts, the first of which is superseded", []string{`runs.#.status equals ["completed"]`, `attempts.#.status equals ["superseded","completed"]`, `attempts.#.reason equals ["initial","steering_restart"]`}},
	{"steering_restart_fallback", "its turn is ended, its root node interrupted", []string{`providerTurns.0.status one of "interrupted" "cancelled"`, `providerTurns.1.status equals "completed"`, `nodes.#(kind=="root_turn")#.status equals ["interrupted","completed"]`}},
	{"steering_restart_fallback", "the run is the second attempt's", []string{`runs.0.activeAttemptId matches run-attempt:.*:2`, `runs.0.rootNodeId matches node:root:.*:2`}},
	{"steering_restart_fallback", "nobody interrupted", []string{`turnItems.#(type=="run_interrupt_request") absent`, `turnItems.#(type=="run_interrupt_result") absent`}},
	{"steering_restart_fallback", "the second turn is asked for once the first has ended", []string{`order codex: out turn/interrupt, in turn/completed, out turn/start`, `order cursor: out run.cancel, in run.completed, out run.start`}},
	{"steering_restart_fallback", "a provider that can't is left alone", []string{`without steeringByRestart: runs.#.status equals ["completed"]`, `without steeringByRestart: attempts.#.reason equals ["initial"]`, `refused without steeringByRestart: not_supported`, `wire claude: prompt.offer x1`}},

	{"subagent", "two native subagents complete, made by the agent", []string{`subagents.#.status equals ["completed","completed"]`, `subagents.#.origin equals ["provider_native","provider_native"]`, `subagents.#.createdBy equals ["agent","agent"]`}},
	{"subagent", "each has a thread without runs", []string{`shell: threads.# equals 3`, `shell: threads.#.runCount equals [1,0,0]`, `child 1: runs length 0`, `child 2: runs length 0`}},
	{"subagent", "which knows where it comes from", []string{`child 1: thread.lineage.relationshipToParent equals "subagent"`, `child 2: thread.lineage.relationshipToParent equals "subagent"`, `codex: child 1: providerThreads.0.forkedFrom.providerTurnId matches provider-turn:codex:.*`, `shared: child of nobody`, `shared: child of another root`}},
	{"subagent", "and its turn, where the provider tells of one", []string{`child 1: providerThreads.# equals 1`, `codex: child 1: providerTurns.#.status equals ["completed"]`, `claude: child 1: providerTurns length 0`}},
	{"subagent", "the parent has none of its words and work but the result", []string{`turnItems.#(type=="command_execution") absent`, `messages.#(role=="assistant")#.text equals ["Both helpers are done."]`, `turnItems.#(type=="subagent").result contains "First helper"`, `subagents.0.result contains "First helper"`}},
	{"subagent", "the parent stays on its provider thread", []string{`thread.activeProviderThreadId matches provider-thread:[a-z-]+:.*`, `providerThreads length 1`}},
	{"subagent", "the ends of both end no run", []string{`probe runs.0.status equals "running"`, `runs.#.status equals ["completed"]`, `fault: a child's completion closes the run`}},

	{"subagent_checkpoint", "the child's scope lies below the run's and advances nothing", []string{`checkpointScopes.#.kind equals ["root_run","subagent"]`, `checkpointScopes.1.parentScopeId matches checkpoint-scope:.*:run-1`, `checkpointScopes.#.advancesAppRunCount equals [true,false]`}},
	{"subagent_checkpoint", "its checkpoints are counted on their own, and by no run", []string{`checkpoints.#.ordinalWithinScope equals [0,1,1]`, `checkpoints.#.appRunOrdinal equals [null,null,1]`, `checkpoints.1.files.#.path equals ["helper.txt"]`, `fault: a child checkpoint advances the run count`}},
	{"subagent_checkpoint", "the run and its own checkpoint are as ever", []string{`probe runs.0.checkpointId absent`, `runs.0.checkpointId matches checkpoint:.*run-1:1`, `runs.#.status equals ["completed"]`}},

	{"thread_rollback", "the second of three runs is rolled back", []string{`runs.#.ordinal equals [1,2,3]`, `runs.#.status equals ["completed","rolled_back","completed"]`}},
	{"thread_rollback", "its items are kept and not shown", []string{`turnItems length 9`, `visibleTurnItems length 6`, `visibleTurnItems.#(item.text=="Respond with exactly: second turn complete") absent`}},
	{"thread_rollback", "later checkpoints are stale", []string{`checkpoints.#.status equals ["ready","ready","stale","stale","ready","ready"]`}},
	{"thread_rollback", "on one provider thread", []string{`providerThreads length 1`, `wire codex: thread/revert x1`, `wire claude: query.open x2`}},
	{"thread_rollback", "whose head is set until the next turn, where it has one", []string{`probe claude: providerThreads.0.nativeConversationHeadRef.driver equals "claude"`, `providerThreads.0.nativeConversationHeadRef equals null`}},
	{"thread_rollback", "a provider that can't keeps all", []string{`refused without rollback: not_supported`, `without rollback: runs.#.status equals ["completed","completed","completed"]`}},
	{"thread_fork", "a fork that can't be copied is told everything", []string{`without fork: runs.#.status equals ["completed","completed","completed"]`, `wire cursor: agent.open x3`}},

	{"approval_request", "the request is seen pending, then resolved", []string{`probe runtimeRequests.#.status equals ["pending"]`, `runtimeRequests.#.status equals ["resolved"]`}},
	{"approval_request", "user, command, approval and answer are items", []string{`turnItems.#.type in order "user_message" "command_execution" "approval_request" "assistant_message" "checkpoint"`, `nodes.#.kind contains "approval_request"`}},
	{"approval_request", "one question, one acceptance", []string{`wire codex: item/commandExecution/requestApproval x1`, `wire claude: permission.request x1`, `fault: an acceptance becomes a refusal`}},

	{"provider_switch_return", "three runs go there and back", []string{`runs.#.providerInstanceId equals ["codex","claude","codex"]`, `runs.#.status equals ["completed","completed","completed"]`}},
	{"provider_switch_return", "on two provider threads, the first of which has both ends", []string{`providerThreads length 2`, `codex: providerThreads.#(driver=="codex").firstRunOrdinal equals 1`, `codex: providerThreads.#(driver=="codex").lastRunOrdinal equals 3`}},
	{"provider_switch_return", "each is told what it does not know, and no more", []string{`contextHandoffs.#.strategy equals ["full_thread_summary","delta_since_target_last_seen"]`, `contextHandoffs.#.status equals ["ready","ready"]`, `contextHandoffs.#.coveredRunOrdinals equals [{"from":1,"to":1},{"from":2,"to":2}]`, `contextHandoffs.1.summaryText equals "User: Respond with exactly: claude second\nAssistant: claude second"`}},
	{"provider_switch_return", "by transfers that are used up", []string{`contextTransfers.#.type equals ["provider_handoff","provider_handoff"]`, `contextTransfers.#.status equals ["consumed","consumed"]`, `contextTransfers.#.resolution.strategy equals ["portable_context","delta_context"]`}},
	{"provider_switch_return", "the user's words are what the user said", []string{`messages.#(role=="user")#.text equals ["Respond with exactly: codex first","Respond with exactly: claude second","Respond with exactly: codex third"]`}},
	{"provider_resume_refused", "a lost thread is followed by one that is told everything", []string{`providerThreads.#(driver=="codex")#.status equals ["closed","idle"]`, `contextHandoffs.#.strategy equals ["full_thread_summary","full_thread_summary"]`, `contextHandoffs.#.coveredRunOrdinals equals [{"from":1,"to":1},{"from":1,"to":2}]`, `order codex: out thread/resume, in thread/resume, out thread/start`}},
}

// everywhere is what every scenario must keep, by the rows of the tests that
// spoil it.
var everywhere = []claim{
	{"", "there is one root projection", []string{"shared: second root"}},
	{"", "the thread is the selected provider's", []string{"shared: provider", "shared: model"}},
	{"", "there is a provider thread, and a turn for each run", []string{"shared: no provider thread", "shared: turns"}},
	{"", "sequences are 1..N", []string{"fault: a snapshot stands at a later sequence", "fault: the stream repeats an event"}},
	{"", "a run has a root node that counts", []string{"shared: root node", "shared: root node counts"}},
	{"", "turns are of nodes and threads that exist", []string{"shared: turn node", "shared: turn thread"}},
	{"", "items are in order", []string{"shared: item order"}},
	{"", "items, messages and requests are of things that exist", []string{"shared: item run", "shared: item node", "shared: item message", "shared: item parent", "shared: message run", "shared: message node", "shared: request turn"}},
	{"", "a request to do something sits on its approval", []string{"shared: request node"}},
	{"", "a thread with a completed run keeps a baseline", []string{"shared: baseline"}},
	{"", "nothing of the agent's is stored while it streams", []string{"shared: streaming"}},
	{"", "the transcript is played to its end", []string{"fault: an interrupt never reaches the provider", "fault: a turn is given twice"}},
	{"", "a command is carried out once", []string{"fault: a duplicate command replays"}},
}

// TestChecklist wants every claim to be held by something that is still there.
func TestChecklist(t *testing.T) {
	found := map[string]map[string]bool{"": commonEvidence()}
	for _, c := range slices.Concat(checklist, everywhere) {
		if found[c.scenario] == nil {
			found[c.scenario] = evidence(t, c.scenario)
		}
		for _, line := range c.held {
			ok := found[c.scenario][line] || found[""][line]
			if order, is := strings.CutPrefix(line, "order "); is {
				provider, labels, _ := strings.Cut(order, ": ")
				ok = inOrder(strings.Split(labels, ", "), frames(t, "../../transcripts/"+c.scenario+"/"+provider+".ndjson"))
			}
			if !ok {
				t.Errorf("%s: %s: nothing holds that\n\t%s", c.scenario, c.claim, line)
			}
		}
	}
	all, err := LoadAll("../../transcripts", "transcripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range all {
		if !slices.ContainsFunc(sc.Assertions, func(a Assertion) bool { return a.Path == "runs.#.status" && a.Equals != nil }) {
			t.Errorf("%s: nothing says which runs there are and how they end", sc.File)
		}
	}
}

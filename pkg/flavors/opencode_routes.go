package flavors

import (
	"net/url"
	"strings"
	"sync"
)

// operation is one call of the OpenCode server's interface.
type operation struct {
	// name is the call's name in SDK v2, without the client: session.create.
	name   string
	method string
	// path has {NAME} for a value and a last * for the rest.
	path string
	// query lists the inputs that travel in the query of any method, with
	// ":number" or ":bool" where the value is not a string.
	query string
	// body is the input that is the whole request body; where it is empty the
	// members of the body are inputs of their own.
	body   string
	answer answer
}

// answer is what an operation's success looks like on the wire.
type answer uint8

const (
	content     answer = iota // 200 and JSON
	noContent                 // 204
	eventStream               // 200 and server-sent events until one side closes
)

// operations is the OpenCode server's interface, as @opencode-ai/sdk 1.19.3
// calls it (v1 and v2; where both name a route, by the name of v2) and
// OpenCode 1.18.33 serves it.
var operations = []operation{
	{"event.subscribe", "GET", "/event", "", "", eventStream},
	{"global.health", "GET", "/global/health", "", "", content},
	{"global.dispose", "POST", "/global/dispose", "", "", content},
	{"global.upgrade", "POST", "/global/upgrade", "", "", content},
	{"global.config.get", "GET", "/global/config", "", "", content},
	{"global.config.update", "PATCH", "/global/config", "", "config", content},
	{"global.event", "GET", "/global/event", "", "", eventStream},
	{"session.list", "GET", "/session", "scope path roots:bool start:number search limit:number", "", content},
	{"session.create", "POST", "/session", "", "", content},
	{"session.status", "GET", "/session/status", "", "", content},
	{"session.delete", "DELETE", "/session/{sessionID}", "", "", content},
	{"session.get", "GET", "/session/{sessionID}", "", "", content},
	{"session.update", "PATCH", "/session/{sessionID}", "", "", content},
	{"session.children", "GET", "/session/{sessionID}/children", "", "", content},
	{"session.todo", "GET", "/session/{sessionID}/todo", "", "", content},
	{"session.diff", "GET", "/session/{sessionID}/diff", "messageID", "", content},
	{"session.messages", "GET", "/session/{sessionID}/message", "limit:number before", "", content},
	{"session.prompt", "POST", "/session/{sessionID}/message", "", "", content},
	{"session.deleteMessage", "DELETE", "/session/{sessionID}/message/{messageID}", "", "", content},
	{"session.message", "GET", "/session/{sessionID}/message/{messageID}", "", "", content},
	{"session.fork", "POST", "/session/{sessionID}/fork", "", "", content},
	{"session.abort", "POST", "/session/{sessionID}/abort", "", "", content},
	{"session.init", "POST", "/session/{sessionID}/init", "", "", content},
	{"session.unshare", "DELETE", "/session/{sessionID}/share", "", "", content},
	{"session.share", "POST", "/session/{sessionID}/share", "", "", content},
	{"session.summarize", "POST", "/session/{sessionID}/summarize", "", "", content},
	{"session.promptAsync", "POST", "/session/{sessionID}/prompt_async", "", "", noContent},
	{"session.command", "POST", "/session/{sessionID}/command", "", "", content},
	{"session.shell", "POST", "/session/{sessionID}/shell", "", "", content},
	{"session.revert", "POST", "/session/{sessionID}/revert", "", "", content},
	{"session.unrevert", "POST", "/session/{sessionID}/unrevert", "", "", content},
	{"permission.list", "GET", "/permission", "", "", content},
	{"permission.reply", "POST", "/permission/{requestID}/reply", "", "", content},
	{"permission.respond", "POST", "/session/{sessionID}/permissions/{permissionID}", "", "", content},
	{"question.list", "GET", "/question", "", "", content},
	{"question.reply", "POST", "/question/{requestID}/reply", "", "", content},
	{"question.reject", "POST", "/question/{requestID}/reject", "", "", content},
	{"part.delete", "DELETE", "/session/{sessionID}/message/{messageID}/part/{partID}", "", "", content},
	{"part.update", "PATCH", "/session/{sessionID}/message/{messageID}/part/{partID}", "", "part", content},
	{"mcp.status", "GET", "/mcp", "", "", content},
	{"mcp.add", "POST", "/mcp", "", "", content},
	{"mcp.connect", "POST", "/mcp/{name}/connect", "", "", content},
	{"mcp.disconnect", "POST", "/mcp/{name}/disconnect", "", "", content},
	{"mcp.auth.remove", "DELETE", "/mcp/{name}/auth", "", "", content},
	{"mcp.auth.start", "POST", "/mcp/{name}/auth", "", "", content},
	{"mcp.auth.callback", "POST", "/mcp/{name}/auth/callback", "", "", content},
	{"mcp.auth.authenticate", "POST", "/mcp/{name}/auth/authenticate", "", "", content},
	{"config.get", "GET", "/config", "", "", content},
	{"config.update", "PATCH", "/config", "", "config", content},
	{"config.providers", "GET", "/config/providers", "", "", content},
	{"provider.list", "GET", "/provider", "", "", content},
	{"provider.auth", "GET", "/provider/auth", "", "", content},
	{"provider.oauth.authorize", "POST", "/provider/{providerID}/oauth/authorize", "", "", content},
	{"provider.oauth.callback", "POST", "/provider/{providerID}/oauth/callback", "", "", content},
	{"app.log", "POST", "/log", "", "", content},
	{"app.agents", "GET", "/agent", "", "", content},
	{"app.skills", "GET", "/skill", "", "", content},
	{"auth.remove", "DELETE", "/auth/{providerID}", "", "", content},
	{"auth.set", "PUT", "/auth/{providerID}", "", "auth", content},
	{"command.list", "GET", "/command", "", "", content},
	{"file.list", "GET", "/file", "path", "", content},
	{"file.read", "GET", "/file/content", "path", "", content},
	{"file.status", "GET", "/file/status", "", "", content},
	{"find.text", "GET", "/find", "pattern", "", content},
	{"find.files", "GET", "/find/file", "query dirs type limit:number", "", content},
	{"find.symbols", "GET", "/find/symbol", "query", "", content},
	{"formatter.status", "GET", "/formatter", "", "", content},
	{"instance.dispose", "POST", "/instance/dispose", "", "", content},
	{"lsp.status", "GET", "/lsp", "", "", content},
	{"path.get", "GET", "/path", "", "", content},
	{"project.list", "GET", "/project", "", "", content},
	{"project.current", "GET", "/project/current", "", "", content},
	{"project.initGit", "POST", "/project/git/init", "", "", content},
	{"project.update", "PATCH", "/project/{projectID}", "", "", content},
	{"project.directories", "GET", "/project/{projectID}/directories", "", "", content},
	{"pty.shells", "GET", "/pty/shells", "", "", content},
	{"pty.list", "GET", "/pty", "", "", content},
	{"pty.create", "POST", "/pty", "", "", content},
	{"pty.remove", "DELETE", "/pty/{ptyID}", "", "", content},
	{"pty.get", "GET", "/pty/{ptyID}", "", "", content},
	{"pty.update", "PUT", "/pty/{ptyID}", "", "", content},
	{"pty.connectToken", "POST", "/pty/{ptyID}/connect-token", "", "", content},
	{"pty.connect", "GET", "/pty/{ptyID}/connect", "cursor ticket", "", content},
	{"sync.start", "POST", "/sync/start", "", "", content},
	{"sync.replay", "POST", "/sync/replay", "", "", content},
	{"sync.steal", "POST", "/sync/steal", "", "", content},
	{"sync.history.list", "POST", "/sync/history", "", "body", content},
	{"tool.list", "GET", "/experimental/tool", "provider model", "", content},
	{"tool.ids", "GET", "/experimental/tool/ids", "", "", content},
	{"tui.appendPrompt", "POST", "/tui/append-prompt", "", "", content},
	{"tui.openHelp", "POST", "/tui/open-help", "", "", content},
	{"tui.openSessions", "POST", "/tui/open-sessions", "", "", content},
	{"tui.openThemes", "POST", "/tui/open-themes", "", "", content},
	{"tui.openModels", "POST", "/tui/open-models", "", "", content},
	{"tui.submitPrompt", "POST", "/tui/submit-prompt", "", "", content},
	{"tui.clearPrompt", "POST", "/tui/clear-prompt", "", "", content},
	{"tui.executeCommand", "POST", "/tui/execute-command", "", "", content},
	{"tui.showToast", "POST", "/tui/show-toast", "", "", content},
	{"tui.publish", "POST", "/tui/publish", "", "body", content},
	{"tui.selectSession", "POST", "/tui/select-session", "", "", content},
	{"tui.control.next", "GET", "/tui/control/next", "", "", content},
	{"tui.control.response", "POST", "/tui/control/response", "", "body", content},
	{"vcs.get", "GET", "/vcs", "", "", content},
	{"vcs.status", "GET", "/vcs/status", "", "", content},
	{"vcs.diff", "GET", "/vcs/diff", "mode context:number", "", content},
	{"vcs.apply", "POST", "/vcs/apply", "", "", content},
	{"vcs.diff2.raw", "GET", "/vcs/diff/raw", "", "", content},
	{"worktree.remove", "DELETE", "/experimental/worktree", "", "worktreeRemoveInput", content},
	{"worktree.list", "GET", "/experimental/worktree", "", "", content},
	{"worktree.create", "POST", "/experimental/worktree", "", "worktreeCreateInput", content},
	{"worktree.reset", "POST", "/experimental/worktree/reset", "", "worktreeResetInput", content},
	// The newer routes below /api, which the SDK keeps under client.v2.
	{"v2.health.get", "GET", "/api/health", "", "", content},
	{"v2.location.get", "GET", "/api/location", "location", "", content},
	{"v2.agent.list", "GET", "/api/agent", "location", "", content},
	{"v2.session.list", "GET", "/api/session", "limit:number order search project subpath cursor", "", content},
	{"v2.session.create", "POST", "/api/session", "", "", content},
	{"v2.session.active", "GET", "/api/session/active", "", "", content},
	{"v2.session.get", "GET", "/api/session/{sessionID}", "", "", content},
	{"v2.session.switchAgent", "POST", "/api/session/{sessionID}/agent", "", "", noContent},
	{"v2.session.switchModel", "POST", "/api/session/{sessionID}/model", "", "", noContent},
	{"v2.session.prompt", "POST", "/api/session/{sessionID}/prompt", "", "", content},
	{"v2.session.compact", "POST", "/api/session/{sessionID}/compact", "", "", noContent},
	{"v2.session.wait", "POST", "/api/session/{sessionID}/wait", "", "", noContent},
	{"v2.session.context", "GET", "/api/session/{sessionID}/context", "", "", content},
	{"v2.session.history", "GET", "/api/session/{sessionID}/history", "limit:number after:number", "", content},
	{"v2.session.interrupt", "POST", "/api/session/{sessionID}/interrupt", "", "", noContent},
	{"v2.session.message", "GET", "/api/session/{sessionID}/message/{messageID}", "", "", content},
	{"v2.session.messages", "GET", "/api/session/{sessionID}/message", "limit:number order cursor", "", content},
	{"v2.session.revert.stage", "POST", "/api/session/{sessionID}/revert/stage", "", "", content},
	{"v2.session.revert.clear", "POST", "/api/session/{sessionID}/revert/clear", "", "", noContent},
	{"v2.session.revert.commit", "POST", "/api/session/{sessionID}/revert/commit", "", "", noContent},
	{"v2.session.permission.list", "GET", "/api/session/{sessionID}/permission", "", "", content},
	{"v2.session.permission.create", "POST", "/api/session/{sessionID}/permission", "", "", content},
	{"v2.session.permission.get", "GET", "/api/session/{sessionID}/permission/{requestID}", "", "", content},
	{"v2.session.permission.reply", "POST", "/api/session/{sessionID}/permission/{requestID}/reply", "", "", noContent},
	{"v2.session.question.list", "GET", "/api/session/{sessionID}/question", "", "", content},
	{"v2.session.question.reply", "POST", "/api/session/{sessionID}/question/{requestID}/reply", "", "questionV2Reply", noContent},
	{"v2.session.question.reject", "POST", "/api/session/{sessionID}/question/{requestID}/reject", "", "", noContent},
	{"v2.model.list", "GET", "/api/model", "location", "", content},
	{"v2.provider.list", "GET", "/api/provider", "location", "", content},
	{"v2.provider.get", "GET", "/api/provider/{providerID}", "location", "", content},
	{"v2.integration.list", "GET", "/api/integration", "location", "", content},
	{"v2.integration.get", "GET", "/api/integration/{integrationID}", "location", "", content},
	{"v2.integration.connect.key", "POST", "/api/integration/{integrationID}/connect/key", "location", "", noContent},
	{"v2.integration.connect.oauth", "POST", "/api/integration/{integrationID}/connect/oauth", "location", "", content},
	{"v2.integration.attempt.cancel", "DELETE", "/api/integration/attempt/{attemptID}", "location", "", noContent},
	{"v2.integration.attempt.status", "GET", "/api/integration/attempt/{attemptID}", "location", "", content},
	{"v2.integration.attempt.complete", "POST", "/api/integration/attempt/{attemptID}/complete", "location", "", noContent},
	{"v2.credential.remove", "DELETE", "/api/credential/{credentialID}", "location", "", noContent},
	{"v2.credential.update", "PATCH", "/api/credential/{credentialID}", "location", "", noContent},
	{"v2.permission.request.list", "GET", "/api/permission/request", "location", "", content},
	{"v2.permission.saved.list", "GET", "/api/permission/saved", "projectID", "", content},
	{"v2.permission.saved.remove", "DELETE", "/api/permission/saved/{id}", "", "", noContent},
	{"v2.fs.read", "GET", "/api/fs/read/*", "location", "", content},
	{"v2.fs.list", "GET", "/api/fs/list", "location path", "", content},
	{"v2.fs.find", "GET", "/api/fs/find", "location query type limit", "", content},
	{"v2.command.list", "GET", "/api/command", "location", "", content},
	{"v2.skill.list", "GET", "/api/skill", "location", "", content},
	{"v2.pty.list", "GET", "/api/pty", "location", "", content},
	{"v2.pty.create", "POST", "/api/pty", "location", "", content},
	{"v2.pty.remove", "DELETE", "/api/pty/{ptyID}", "location", "", noContent},
	{"v2.pty.get", "GET", "/api/pty/{ptyID}", "location", "", content},
	{"v2.pty.update", "PUT", "/api/pty/{ptyID}", "location", "", content},
	{"v2.pty.connectToken", "POST", "/api/pty/{ptyID}/connect-token", "location", "", content},
	{"v2.pty.connect", "GET", "/api/pty/{ptyID}/connect", "location cursor ticket", "", content},
	{"v2.question.request.list", "GET", "/api/question/request", "location", "", content},
	{"v2.reference.list", "GET", "/api/reference", "location", "", content},
	{"v2.projectCopy.remove", "DELETE", "/experimental/project/{projectID}/copy", "location", "", noContent},
	{"v2.projectCopy.create", "POST", "/experimental/project/{projectID}/copy", "location", "", content},
	{"v2.projectCopy.refresh", "POST", "/experimental/project/{projectID}/copy/refresh", "location", "", noContent},
	{"v2.event.subscribe", "GET", "/api/event", "location", "", eventStream},
	{"v2.session.events", "GET", "/api/session/{sessionID}/event", "after:number", "", eventStream},
	// Experimental.
	{"experimental.controlPlane.moveSession", "POST", "/experimental/control-plane/move-session", "", "", noContent},
	{"experimental.capabilities.get", "GET", "/experimental/capabilities", "", "", content},
	{"experimental.console.get", "GET", "/experimental/console", "", "", content},
	{"experimental.console.listOrgs", "GET", "/experimental/console/orgs", "", "", content},
	{"experimental.console.switchOrg", "POST", "/experimental/console/switch", "", "", content},
	{"experimental.session.list", "GET", "/experimental/session", "roots:bool start:number cursor:number search limit:number archived:bool", "", content},
	{"experimental.session.background", "POST", "/experimental/session/{sessionID}/background", "", "", content},
	{"experimental.resource.list", "GET", "/experimental/resource", "", "", content},
	{"experimental.projectCopy.generateName", "POST", "/experimental/project/{projectID}/copy/generate-name", "", "", content},
	{"experimental.workspace.list", "GET", "/experimental/workspace", "", "", content},
	{"experimental.workspace.create", "POST", "/experimental/workspace", "", "", content},
	{"experimental.workspace.syncList", "POST", "/experimental/workspace/sync-list", "", "", noContent},
	{"experimental.workspace.status", "GET", "/experimental/workspace/status", "", "", content},
	{"experimental.workspace.remove", "DELETE", "/experimental/workspace/{id}", "", "", content},
	{"experimental.workspace.warp", "POST", "/experimental/workspace/warp", "", "", noContent},
	{"experimental.workspace.adapter.list", "GET", "/experimental/workspace/adapter", "", "", content},
}

// renamed are names of SDK v1 for operations that a transcript has by the name
// of v2.
var renamed = map[string]string{
	"postSessionIdPermissionsPermissionId": "permission.respond",
	"mcp.auth.set":                         "auth.set",
	"auth.start":                           "mcp.auth.start",
	"auth.callback":                        "mcp.auth.callback",
	"auth.authenticate":                    "mcp.auth.authenticate",
}

// route is an operation prepared for look-ups.
type route struct {
	*operation
	segments []string
	inputs   map[string]string // of the query: name to type
}

// routes holds the table by name and by method.
var routes = sync.OnceValue(func() *routeTable {
	t := &routeTable{byName: map[string]*route{}, byMethod: map[string][]*route{}}
	for i := range operations {
		op := &operations[i]
		r := &route{operation: op, segments: strings.Split(op.path, "/"), inputs: map[string]string{}}
		for name := range strings.FieldsSeq(op.query) {
			name, kind, _ := strings.Cut(name, ":")
			r.inputs[name] = kind
		}
		t.byName[op.name] = r
		t.byMethod[op.method] = append(t.byMethod[op.method], r)
	}
	return t
})

type routeTable struct {
	byName   map[string]*route
	byMethod map[string][]*route
}

// find returns the operation of a request and the values in its path; nil for
// a route that is not in the table. Among routes that fit, the one with the
// longest literal beginning wins: /session/status is no session.
func (t *routeTable) find(method, path string) (*route, []input) {
	segments := strings.Split(path, "/")
	var best *route
	for _, r := range t.byMethod[method] {
		if r.fits(segments) && (best == nil || r.literal() > best.literal()) {
			best = r
		}
	}
	if best == nil {
		return nil, nil
	}
	return best, best.values(segments)
}

func (r *route) fits(segments []string) bool {
	for i, want := range r.segments {
		switch {
		case want == "*":
			return len(segments) > i
		case i >= len(segments):
			return false
		case parameter(want) != "":
			if v, err := url.PathUnescape(segments[i]); err != nil || v == "" {
				return false
			}
		case want != segments[i]:
			return false
		}
	}
	return len(segments) == len(r.segments)
}

// literal counts the segments before the first parameter.
func (r *route) literal() int {
	for i, s := range r.segments {
		if s == "*" || parameter(s) != "" {
			return i
		}
	}
	return len(r.segments)
}

// input is one named value of a call, as a JSON literal.
type input struct {
	name  string
	value []byte
}

// restInput is the input that stands for the rest of a path.
const restInput = "path"

func (r *route) values(segments []string) []input {
	var list []input
	for i, want := range r.segments {
		name, text := parameter(want), ""
		switch {
		case want == "*":
			name, text = restInput, strings.Join(segments[i:], "/")
		case name != "":
			text = segments[i]
		default:
			continue
		}
		if v, err := url.PathUnescape(text); err == nil { // fits has tried it, but for the rest
			text = v
		}
		list = append(list, input{name, quote(text)})
	}
	return list
}

// parameter returns the name in "{name}", "" for a literal segment.
func parameter(segment string) string {
	if len(segment) > 2 && segment[0] == '{' {
		return segment[1 : len(segment)-1]
	}
	return ""
}

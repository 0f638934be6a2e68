package redact

import (
	"regexp"
	"slices"
	"strings"
)

// personal are data of people and their machines.
var personal = []Rule{
	{
		ID:       "email",
		Keywords: []string{"@"},
		Pattern:  `[A-Za-z0-9](?:[A-Za-z0-9._%+'-]{0,62}[A-Za-z0-9_+-])?@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,24}\b`,
		Personal: true,
		Fits:     func(g []string) bool { return fitsEmail(g[0]) },
		Hits:     []string{"mail «jo.doe+x@mail.corp.io»", "<«a@b.co»>", "«{l6}@{l8}.de»,"},
		Misses: []string{
			"git@github.com", "me@example.com", "logo@2x.png", "@scope/pkg@1.2.3", "user@1000.service", "noreply@github.com",
			"postgres://u@host.internal/x", "a@localhost", "react@18.2.0",
		},
	}, {
		ID:       "git-remote",
		Keywords: []string{"git@", "ssh://", ".git"},
		Pattern: `(?:ssh://(?:[A-Za-z0-9._-]+@)?|\b[A-Za-z0-9_.-]+@)[A-Za-z0-9.-]+(?::[0-9]+/|[:/])((?:[A-Za-z0-9~_.-]+/)+[A-Za-z0-9_.-]+)` +
			`|https?://((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?::[0-9]+)?/(?:[A-Za-z0-9~_.-]+/)+[A-Za-z0-9_.-]+\.git)\b`,
		Personal: true,
		Fits:     fitsRemote,
		Hits: []string{
			"origin git@github.com:«{l6}/{l7}.git» (fetch)", "ssh://git@git.corp.io:7999/«proj/repo»", "https://«git.corp.io/team/app.git»",
			"git@gitlab.com:«group/sub/{l5}»",
		},
		Misses: []string{"https://github.com/golang/go.git", "git@github.com", "a@b:c", "ssh://host", "npm i x@latest/y"},
	}, {
		ID:       "home-user",
		Keywords: []string{"home", "Users", "users"},
		Pattern:  `(?:^|[^A-Za-z0-9_.%~-])(?:file://)?(?:[A-Za-z]:)?(?:/var)?[\\/]{1,4}(?:home|[Uu]sers)[\\/]{1,4}([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?)`,
		Personal: true,
		Fits:     func(g []string) bool { return !commonHome(g[1]) },
		Hits: []string{
			"/home/«{l7}»/x", "/Users/«{l5}.{l6}»", `C:\Users\«{l6}»\AppData`, `C:\\Users\\«{l6}»\\x`, "file:///home/«{l6}»/a",
		},
		Misses: []string{"/home/user/x", "https://h.io/home/page1", "/Users/Shared", "/home", "~/home/x", "/usr/home.d/x"},
	}, {
		ID:       "home-user-folder",
		Keywords: []string{"-home-", "-Users-"},
		Pattern:  `(?:^|[/"'\s])-(?:home|Users)-([A-Za-z0-9_]+)`,
		Personal: true,
		Fits:     func(g []string) bool { return !commonHome(g[1]) },
		Hits:     []string{".claude/projects/-home-«{l7}»-work/x.jsonl"},
		Misses:   []string{"take-home-pay", "-home-user-x"},
	},
}

// Hosts and addresses that tell nothing about a person.
var (
	commonMail = regexp.MustCompile(`(?i)^(?:git|no-?reply|user|me|you|name|someone|nobody|test|foo|bar|hello|info|support|root|postgres|admin|app|u)@` +
		`|@(?:.*\.)?(?:example|test|invalid|localhost|local|internal|lan|localdomain|service|socket|target|timer|mount)$` +
		`|@(?:.*\.)?example\.(?:com|org|net)$|@[0-9]+x\.[a-z]+$|@.*\.(?:png|jpe?g|gif|svg|webp|js|mjs|ts|tsx|jsx|css|json|html|lock|yaml|yml|toml)$`)
	publicGit = regexp.MustCompile(`(?i)^(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|gitee\.com|sr\.ht|git\.kernel\.org|salsa\.debian\.org|[a-z0-9.-]*googlesource\.com|.*example\.(?:com|org|net))(?::[0-9]+)?/`)
	homes     = []string{
		"user", "users", "username", "name", "you", "your-name", "yourname", "me", "runner", "runneradmin", "root", "ubuntu", "node", "vscode", "git", "app", "build", "builder", "builduser",
		"agent", "dev", "developer", "test", "tester", "ci", "docker", "codespace", "gitpod", "linuxbrew", "shared", "public", "default", "guest", "admin", "administrator", "vagrant", "pi",
		"circleci", "travis", "jenkins", "sandbox", "workspace", "work", "coder", "someone", "foo", "bar", "example", "all", "index", "page", "about", "home", "www", "www-data", "postgres", "nobody", "deploy",
	}
)

func fitsEmail(address string) bool { return !commonMail.MatchString(address) }

// fitsRemote takes any remote by ssh, which needs an account, and remotes by
// https on hosts that are not public.
func fitsRemote(g []string) bool {
	if g[2] != "" {
		return !publicGit.MatchString(g[2])
	}
	scheme := strings.HasPrefix(g[0], "ssh://")
	return scheme || strings.HasPrefix(g[0], "git@") || strings.HasSuffix(g[1], ".git")
}

func commonHome(name string) bool { return slices.Contains(homes, strings.ToLower(name)) }

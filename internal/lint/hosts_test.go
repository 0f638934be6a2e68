package lint

import (
	"testing"

	"pgregory.net/rapid"
)

// The cheap looks must let through whatever the expressions would find.
func TestCheapLooks(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		".local", ".LAN", ".internal", ".corp", ".intranet", ".home.arpa", "10.", "192.168.", "172.16.", "172.31.", "1", "22", ".", "0",
		"-MacBook", "-mbp", "anns", "box", "-pc", "s-laptop", "-", "_", "/", "(", " ", "\n", "é", "ſ", "@", "a@b.io", "a", "%", "x.y", "\xff", "=", "/home/", "/Users/", "-home-",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, p := range rapid.SliceOfN(piece, 1, 8).Draw(t, "text") {
			text += p
		}
		b := []byte(text)
		host, ip, mac := hostWords(b)
		for _, look := range []struct {
			name        string
			cheap, real bool
		}{
			{"privateHost", host, privateHost.Match(b)}, {"privateIP", ip, privateIP.Match(b)}, {"personsMac", mac, personsMac.Match(b)},
			{"email", mayBeMail(b), email.Match(b)}, {"home", mayBeHome(text), home.MatchString(text)},
		} {
			if look.real && !look.cheap {
				t.Fatalf("%s finds something in %q, which the cheap look does not let through", look.name, text)
			}
		}
	})
}

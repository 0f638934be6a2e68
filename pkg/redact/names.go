package redact

import (
	"slices"
	"strings"
)

// name is the name of a user or a host of the recording machine.
type name struct {
	text string
	rule string // "user" or "host"
	// common names are words or accounts that any text may hold: they count
	// only where the surroundings say that a user or host is meant.
	common bool
}

// commonNames are words that people, accounts and machines are called after,
// and what the tools around here are called.
var commonNames = strings.Fields(`
	able abbey ace adam admin administrator agent alba alex alma amber amen angel anima app april arch archer art ash aspen aster atlas august aurora autumn axel
	baker banks baron basil bash bay beacon bear beau bell belle ben benedict berry beta bill birch bird bishop black blade blaze bliss blue bo bob bolt bond book booth bot box brand brave breeze brian brick bridge brook brooks brown buck bud build builder buster butler
	cain callie camp canon carbon carol carpenter carter case cash cat chance chandler charity charm chase chef cherry chip christian church ci clark claude clay clem cliff clip clover coal code coder codex cody coin cole colt container cook cool coop cooper coral core cosmo crew crystal cursor curt
	daemon dahlia daisy dale dan dane dawn dash data day deacon dean deb debian default delta demo deploy desktop destiny dev developer dixie doc docker dolly dot drake drew duke dusty dutch
	earl earnest east easton eden editor elder ember emerald eve even ever faith fay fern field finch finn fisher fleet flora flower forest fork foster fox frank frankie free freeman friday frost
	gale garden garland garner gate gay gem gemini gene general gentle gift gil gin ginger git glen gold golden good grace grady grand grant gray green grey grok grove guest gunner gus guy
	hall hand hank happy harbor hardy harmony harper harry hart haven hawk hazel heath heather heaven henry herb hero hill holiday holly home honey honor hope host house hub hugh hunter hunt hyacinth
	image in index info ink iris isle ivory ivy jack jade jasmine jasper jay jean jenkins jet jewel job john jolly joy judge jules july june junior just justice
	kale kay keen kelp kernel key king kit kitty knight lake lance lane lark laurel lavender law lea leaf lee leo liberty light lily lincoln linux link lion local localhost log loop love lucky luna lynx
	mac main maker man manager maple marcel march marina mark marsh marshall mason master match max may me meadow melody merit mercy merry mike miles mill miller mini mint miracle misty model molly monday monk moon moore morning moss muse
	name nat navy net nick node noel norm north nova null oak ocean oliver olive op open opencode openai opal operator orchid owner ox
	page paige paris park parker pat patience paul peace pearl pen penny pepper perry pet peter petal phoenix pi pierce pine piper plum poet pool poppy port porter postgres post potter power precious price primrose prince print prior process project promise provider prudence public
	queen quest qwen radar rain rainbow ran range ranger raven ray read rebel record red reed reef reese regan rex rich ridge rip river rob robin rock rocky rod roger roman root rose rosemary row rowan royal ruby run runner rush russ rust rusty
	sage sailor sally sam sandbox sandy savannah sawyer scarlet script self server service serenity shade shadow shane shannon shaw shell shepherd sierra silver simple sim sky skip slate smith snow sol solo sonny south spark spencer spike spring sprite staff stan star stella sterling stone storm stormy sue sugar summer sun sunday sunny support sydney system
	tab taylor teal temp temperance terminal terra test tester tim time tiger todd tom tony tool topaz tor tracy trace trip tripp trinity trinket true truly trudy tuck tucker tyler ty ubuntu unity user users utility
	vagrant val vale van vendor vera verity version vic victor victory vince viola violet virtue vision wade walker wallace ward warner warren water watt wave way web weaver west wheeler whisper white will willow win winston winter wolf wood woods woody work worker workspace worth wren wright
	young zephyr zion laptop macbook macmini imac pc workstation thinkpad raspberrypi nas vm build01 codespaces github gitlab acme example machine computer
`)

// newName returns nil for a name that tells nothing.
func newName(text, rule string) *name {
	lower := strings.ToLower(text)
	switch {
	case len(text) < 2, digits(text) == len(text), lower == "localhost", lower == "root", strings.ContainsAny(text, "<> \t\n\"\\"):
		return nil
	case rule == "user" && commonHome(text):
		return nil
	}
	return &name{text: text, rule: rule, common: len(text) < 4 || slices.Contains(commonNames, lower)}
}

// scan calls add with every place of the name in the text, at boundaries of
// words and paths only.
func (n *name) scan(text string, add func(start, end int)) {
	for from := 0; ; {
		i := strings.Index(text[from:], n.text)
		if i < 0 {
			return
		}
		start := from + i
		end := start + len(n.text)
		from = end
		if start > 0 && wordByte(text[start-1]) || end < len(text) && wordByte(text[end]) {
			continue
		}
		if n.common && !n.meant(text, start, end) {
			continue
		}
		add(start, end)
	}
}

// meant says whether the surroundings make a common word a user or host.
func (n *name) meant(text string, start, end int) bool {
	before := strings.ToLower(text[max(0, start-12):start])
	after := text[end:min(len(text), end+3)]
	if n.rule == "host" {
		return strings.HasSuffix(before, "@") || strings.HasSuffix(before, "hostname=") || strings.HasSuffix(before, "host=") || strings.HasPrefix(after, ".lo") ||
			strings.HasSuffix(before, `hostname": "`) || strings.HasSuffix(before, `hostname":"`)
	}
	for _, s := range []string{"/home/", "/users/", `\users\`, "-home-", "-users-", "~", "user=", "logname=", "user: ", "username=", `user":"`, "login=", "uid=", "/run/user/"} {
		if strings.HasSuffix(before, s) {
			return true
		}
	}
	return len(after) > 1 && after[0] == '@' && wordByte(after[1]) && digits(after[1:2]) == 0 && (start == 0 || text[start-1] != '.' && text[start-1] != '/')
}

// wordByte says whether a name may not begin or end beside c.
func wordByte(c byte) bool {
	return c == '_' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

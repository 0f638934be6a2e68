package lint

import "github.com/replaypeer/replaypeer/pkg/envelope"

func checkSeal(c *run, found report) checker {
	var seal envelope.Seal
	return checker{
		entry: func(s *step) { seal.Add(s.entry) },
		end: func() {
			if c.hdr == nil || c.broken {
				return
			}
			want, ok := metadataString(c.hdr, "seal")
			if got := seal.Sum(); ok && got != want {
				found(c.hdr.Line, "metadata.seal", c.again(),
					"the inbound frames are not the recorded ones: they sum to %s", got)
			}
		},
	}
}

func checkNoSeal(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		_, sealed := metadataString(h, "seal")
		source, _ := metadataString(h, "source")
		if !sealed && source != "hand-written" {
			found(h.Line, "metadata", "", "no seal: an edit of what the provider said would not show")
		}
	}}
}

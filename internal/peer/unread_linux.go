package peer

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strconv"
)

// unread returns how many bytes the client, on this machine, has received on
// its end of a connection and not read yet. ok is false when nobody can tell.
// Lines of the table are "sl local rem st tx_queue:rx_queue …" in hex.
func unread(client, server string) (n int64, ok bool) {
	from, err := netip.ParseAddrPort(client)
	if err != nil || !from.Addr().IsLoopback() {
		return 0, false
	}
	to, err := netip.ParseAddrPort(server)
	if err != nil {
		return 0, false
	}
	local, rem := fmt.Appendf(nil, ":%04X", from.Port()), fmt.Appendf(nil, ":%04X", to.Port())
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(table)
		for line := range bytes.Lines(b) {
			f := bytes.Fields(line)
			if len(f) < 5 || !bytes.HasSuffix(f[1], local) || !bytes.HasSuffix(f[2], rem) {
				continue
			}
			_, rx, _ := bytes.Cut(f[4], []byte{':'})
			n, err := strconv.ParseInt(string(rx), 16, 64)
			return n, err == nil
		}
	}
	return 0, false
}

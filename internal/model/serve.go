package model

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// Listen listens on an address that no other machine reaches.
func Listen(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen address: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen address %s: want a loopback address", addr)
	}
	return net.Listen("tcp", addr)
}

// Serve answers on the listener until ctx ends, and then cuts what is still
// open: a client that waits in a hold must not keep it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve model: %w", err)
	}
	return nil
}

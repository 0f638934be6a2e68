package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// pool is connections to one database, opened when they are needed.
type pool struct {
	db     *sql.DB
	begin  string        // the statement
	free   chan struct{} // holds a token for each connection that may be taken
	closed chan struct{} // closed by close

	mu   sync.Mutex
	idle []*connection // the one used last is the last
}

func newPool(db *sql.DB, begin string, connections int) *pool {
	db.SetMaxIdleConns(-1) // who closes a connection means it
	p := &pool{db: db, begin: begin, free: make(chan struct{}, connections), closed: make(chan struct{})}
	for range connections {
		p.free <- struct{}{}
	}
	return p
}

// connection is one with the statements that were used on it, since reading a
// statement costs more than carrying it out. They are constants of this
// package, so their number is bounded.
type connection struct {
	*sql.Conn
	statements map[string]*sql.Stmt // by their text
	unclear    bool                 // it may be within a transaction, so it can't be used again
}

// use runs f on a connection: each of its statements is a transaction.
func (p *pool) use(ctx context.Context, f func(*connection) error) error {
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer p.put(c)
	return f(c)
}

// transact runs f in a transaction, which is undone when f fails.
func (p *pool) transact(ctx context.Context, f func(*connection) error) error {
	return p.use(ctx, func(c *connection) error {
		// Who stops waiting may do so after the transaction has begun, and must
		// not leave it open.
		always := context.WithoutCancel(ctx)
		_, err := c.ExecContext(ctx, p.begin)
		if err == nil {
			err = f(c)
		}
		if err == nil {
			_, err = c.ExecContext(always, "COMMIT")
		}
		if err != nil {
			// A failure of the disk may have ended the transaction, so that this
			// fails too; the first error tells why.
			_, failed := c.ExecContext(always, "ROLLBACK")
			c.unclear = failed != nil
		}
		return err
	})
}

// take waits for a connection.
func (p *pool) take(ctx context.Context) (*connection, error) {
	select {
	case <-p.free:
	case <-p.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	conn, err := p.db.Conn(ctx)
	if err != nil {
		p.free <- struct{}{}
		return nil, err
	}
	return &connection{Conn: conn, statements: map[string]*sql.Stmt{}}, nil
}

func (p *pool) put(c *connection) {
	if c.unclear {
		_ = c.close() // nothing of it counts
	} else {
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	}
	p.free <- struct{}{}
}

// errClosed is what a closed store answers.
var errClosed = errors.New("store is closed")

// close waits for the connections that are taken and closes all. It is called
// once.
func (p *pool) close() error {
	close(p.closed)
	for range cap(p.free) {
		<-p.free
	}
	var errs []error
	for _, c := range p.idle {
		errs = append(errs, c.close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}

// close closes the connection and its statements, for which SQLite would keep
// the file open.
func (c *connection) close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// statement returns the connection's statement of a text.
func (c *connection) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := c.statements[query]; s != nil {
		return s, nil
	}
	s, err := c.PrepareContext(ctx, query)
	if err == nil {
		c.statements[query] = s
	}
	return s, err
}

// ExecContext is that of sql.Conn.
func (c *connection) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// QueryContext is that of sql.Conn.
func (c *connection) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// QueryRowContext is that of sql.Conn.
func (c *connection) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := c.statement(ctx, query)
	if err != nil {
		return c.Conn.QueryRowContext(ctx, query, args...) // which tells the same
	}
	return s.QueryRowContext(ctx, args...)
}

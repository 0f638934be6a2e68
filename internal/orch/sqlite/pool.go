package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// pool is connections with the statements that were used on them, since
// reading a statement costs more than carrying it out.
type pool struct {
	*sql.DB

	mu         sync.Mutex
	statements map[string]*sql.Stmt // by their text; nil before keep
}

// keep makes the pool keep statements from now on. They are constants of this
// package, so their number is bounded.
func (p *pool) keep() { p.statements = map[string]*sql.Stmt{} }

// transaction is one that uses the pool's statements.
type transaction struct {
	*sql.Tx
	pool *pool
	new  []string // statements that are not kept yet
}

// transact runs f in a transaction, which is undone when f fails.
func (p *pool) transact(ctx context.Context, options *sql.TxOptions, f func(*transaction) error) error {
	plain, err := p.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	tx := &transaction{Tx: plain, pool: p}
	if err := f(tx); err != nil {
		// A failure of the disk has ended the transaction already, so that this
		// fails too; the first error tells why.
		_ = tx.Rollback()
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, query := range tx.new { // now that the connection is free
		p.prepare(ctx, query)
	}
	return nil
}

// prepare keeps a statement. One that can't be prepared is not kept.
func (p *pool) prepare(ctx context.Context, query string) {
	statement, err := p.PrepareContext(ctx, query)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.statements[query] != nil {
		statement.Close()
		return
	}
	p.statements[query] = statement
}

// statement returns the kept statement of a text; nil when there is none.
func (tx *transaction) statement(ctx context.Context, query string) *sql.Stmt {
	tx.pool.mu.Lock()
	kept, keeps := tx.pool.statements[query], tx.pool.statements != nil
	tx.pool.mu.Unlock()
	if kept != nil {
		return tx.StmtContext(ctx, kept)
	}
	if keeps {
		tx.new = append(tx.new, query)
	}
	return nil
}

// ExecContext is that of sql.Tx.
func (tx *transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := tx.statement(ctx, query); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return tx.Tx.ExecContext(ctx, query, args...)
}

// QueryContext is that of sql.Tx.
func (tx *transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := tx.statement(ctx, query); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return tx.Tx.QueryContext(ctx, query, args...)
}

// QueryRowContext is that of sql.Tx.
func (tx *transaction) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := tx.statement(ctx, query); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return tx.Tx.QueryRowContext(ctx, query, args...)
}

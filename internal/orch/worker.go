package orch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/jonboulle/clockwork"
)

// work is one effect worker: it claims, carries out and settles effects until
// Shutdown.
func (o *Orchestrator) work(worker int) {
	for {
		woken := o.woken.wait()
		effect, err := o.claim(worker)
		if err != nil && o.ctx.Err() == nil {
			o.log.Error("claim effect", "error", err)
		}
		if effect == nil {
			select {
			case <-woken:
				continue
			case <-o.ctx.Done():
				return
			}
		}
		o.carryOut(*effect)
		if o.ctx.Err() != nil {
			return
		}
	}
}

// poll wakes the workers from time to time, for effects that no commit of this
// process announces.
func (o *Orchestrator) poll(ticker clockwork.Ticker) {
	defer ticker.Stop()
	for {
		select {
		case <-ticker.Chan():
			o.woken.broadcast()
		case <-o.ctx.Done():
			return
		}
	}
}

func (o *Orchestrator) claim(worker int) (*Effect, error) {
	now := o.now()
	return o.store.ClaimEffect(o.ctx, Claim{
		Owner: o.seed.id("process"), Token: strconv.Itoa(worker), Now: now, Until: now.Add(effectLease), Beside: beside,
	})
}

// carryOut runs an effect and settles it. When Shutdown cuts it short it stays
// running in the store, for the next recovery to decide.
func (o *Orchestrator) carryOut(effect Effect) {
	err := o.perform(o.ctx, effect)
	if o.ctx.Err() != nil {
		return
	}
	s := Settlement{EffectID: effect.ID, Lease: effect.Lease, Status: "succeeded", Now: o.now()}
	switch {
	case errors.Is(err, errNotCurrent):
		s.Status, s.Error = "cancelled", err.Error()
	case err != nil && effect.Attempt < maxAttempts(effect.Type):
		wait := backoff(effect.Attempt)
		s.Status, s.Error, s.AvailableAt = "pending", err.Error(), s.Now.Add(wait)
		o.clock.AfterFunc(wait, o.woken.broadcast)
	case err != nil:
		s.Status, s.Error = "failed", err.Error()
	}
	if err != nil {
		o.log.Warn("effect", "id", effect.ID, "attempt", effect.Attempt, "status", s.Status, "error", err)
	}
	// Until it is settled nothing else is done for its thread.
	err = o.insist(o.ctx, effect.ThreadID, func() error {
		held, err := o.store.SettleEffect(context.WithoutCancel(o.ctx), s)
		if err != nil {
			return storeError{err}
		}
		if !held {
			o.log.Warn("effect was settled by another holder", "id", effect.ID)
		}
		return nil
	})
	if err != nil {
		return // shut down: the next recovery decides
	}
	o.woken.broadcast()
	o.changed.broadcast()
}

// errNotCurrent says that an effect found its run elsewhere than where it was
// when the effect was asked for, and wrote nothing.
var errNotCurrent = errors.New("run is no longer current")

// perform carries out one effect. Its writes are guarded: they happen only if
// the run is still where the effect expects it.
func (o *Orchestrator) perform(ctx context.Context, effect Effect) error {
	var args effectPayload
	if err := json.Unmarshal(effect.Payload, &args); err != nil {
		return fmt.Errorf("effect payload: %w", err)
	}
	switch effect.Type {
	case EffectStartTurn:
		return o.startTurn(ctx, effect, args)
	case EffectInterruptTurn:
		return o.interruptTurn(ctx, effect.ThreadID, args)
	case EffectRestartTurn:
		return o.restartTurn(ctx, effect.ThreadID, args)
	case EffectSteerTurn:
		return o.steerTurn(ctx, effect.ThreadID, args)
	case EffectRespond:
		return o.respond(ctx, effect.ThreadID, args)
	case EffectCapture:
		return o.capture(ctx, effect.ThreadID, args, effect.Attempt >= maxAttempts(effect.Type))
	case EffectRollback:
		return o.rollBack(ctx, effect.ThreadID, args)
	case EffectDetach:
		return o.detach(ctx, effect.ThreadID, args.SessionID)
	default:
		return fmt.Errorf("effect type %s is not supported yet", effect.Type)
	}
}

package ort

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	binding "github.com/yalue/onnxruntime_go"
)

// A TimeoutError is the error of a run, or of preparing a graph for runs, that takes longer than
// Runtime.LimitRuns allows.
type TimeoutError struct {
	Limit     time.Duration
	Preparing bool // the session was not ready within the limit
}

func (e *TimeoutError) Error() string {
	if e.Preparing {
		return fmt.Sprintf("the session was not ready within the time limit of %v", e.Limit)
	}
	return fmt.Sprintf("running a graph: it did not end within the time limit of %v", e.Limit)
}

// abandonAfter is the time that ONNX Runtime gets to end a run after its context or the time limit
// has ended. The engine ends runs between operators. A run that is still within an operator after
// that time is abandoned: it continues in the background, and its session and values stay
// allocated.
const abandonAfter = time.Second

// Run executes the graph once. It reads inputs and writes outputs in place. For a nil output it
// stores a new Value, which the caller closes. When ctx ends, the run ends with the context's
// error, and the content of the outputs is undefined: the engine may write to them until the end of
// an operator that it is in. Another run with these values waits for that.
func (s *Session) Run(ctx context.Context, inputs, outputs []*Value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(inputs) != len(s.inputs) || len(outputs) != len(s.outputs) {
		return fmt.Errorf("running a graph of %d inputs and %d outputs with %d and %d tensors", len(s.inputs), len(s.outputs), len(inputs), len(outputs))
	}
	if err := awaitUnused(ctx, inputs, outputs); err != nil {
		return err
	}
	in, err := enter(inputs, s.inputs)
	defer release(inputs, in)
	if err != nil {
		return fmt.Errorf("running a graph: %w", err)
	}
	out, err := enter(outputs, nil)
	defer release(outputs, out)
	if err != nil {
		return fmt.Errorf("running a graph: %w", err)
	}
	if err := s.run(ctx, in, out, notNil(inputs, outputs)); err != nil {
		return err
	}
	// The engine holds addresses only, so this keeps the memory alive until here.
	runtime.KeepAlive(inputs)
	return leave(outputs, out, s.outputs)
}

// enter returns the engine's values for a run, nil for a nil Value. needed has the names of inputs,
// none of which may be nil; for outputs, which may be nil, it is nil.
func enter(values []*Value, needed []string) ([]binding.Value, error) {
	list := make([]binding.Value, len(values))
	for i, v := range values {
		switch {
		case v == nil && needed != nil:
			return list, fmt.Errorf("input %q has no tensor", needed[i])
		case v == nil:
		case v.data == nil:
			return list, errors.New("a tensor is closed")
		case v.placed != nil:
			list[i] = v.placed
		case v.scalar != nil:
			bound, err := v.scalar.enter()
			if err != nil {
				return list, err
			}
			list[i] = bound
		default:
			list[i] = v.bound
		}
	}
	return list, nil
}

// leave stores the results of a run in values, and creates those that are nil.
func leave(values []*Value, list []binding.Value, names []string) error {
	for i, v := range values {
		switch {
		case v == nil:
			adopted, err := adopt(list[i])
			if err != nil {
				return fmt.Errorf("output %q: %w", names[i], err)
			}
			values[i] = adopted
		case v.placed != nil:
			v.placed.newer = true // than the Value's memory
		case v.scalar != nil:
			v.scalar.leave(list[i])
		}
	}
	return nil
}

func notNil(lists ...[]*Value) (values []*Value) {
	for _, list := range lists {
		for _, v := range list {
			if v != nil {
				values = append(values, v)
			}
		}
	}
	return values
}

func awaitUnused(ctx context.Context, lists ...[]*Value) error {
	for _, v := range notNil(lists...) {
		for v.busy.Load() > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	}
	return nil
}

// release frees the values that enter created for one run, unless the engine still uses them.
func release(values []*Value, list []binding.Value) {
	for i, v := range values {
		if v != nil && v.scalar != nil && list[i] != nil && v.busy.Load() == 0 {
			_ = list[i].Destroy() // never fails
		}
	}
}

// run executes the graph when the session's turn comes (begin, end), and stops it when ctx or the
// time limit ends.
func (s *Session) run(ctx context.Context, in, out []binding.Value, used []*Value) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if s.limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, s.limit, &TimeoutError{Limit: s.limit})
		defer cancel()
		ctx = limited
	}
	options, err := binding.NewRunOptions()
	if err != nil {
		s.end()
		return fmt.Errorf("running a graph: %w", oneLine(err))
	}
	done := make(chan error, 1)
	go func() {
		leave := s.runtime.enter(s.model)
		err := s.session.RunWithOptions(in, out, options)
		leave()
		s.end()
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		_ = options.Terminate()
		if err := s.await(ctx, done, used); err != nil {
			return err // an abandoned run still uses the options
		}
	}
	_ = options.Destroy()
	if err != nil {
		return s.explain("running a graph", err)
	}
	if s.check != nil {
		return s.check() // the engine maps files of weights to memory, and reads them when it runs
	}
	return nil
}

// await waits for the end of a run that was told to stop, and abandons one that does not. It
// returns a TimeoutError or the context's error, or nil if the run was complete.
func (s *Session) await(ctx context.Context, done <-chan error, used []*Value) error {
	cause := ctx.Err()
	if expired := (*TimeoutError)(nil); errors.As(context.Cause(ctx), &expired) {
		cause = expired
	}
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case err := <-done:
		if err == nil {
			return nil
		}
	case <-timer.C:
		s.abandon(done, used)
	}
	return cause
}

// abandon marks values as busy, and keeps the session allocated, until the engine ends a run.
func (s *Session) abandon(done <-chan error, used []*Value) {
	elements := make([]any, len(used)) // kept here, since Close removes them from a Value
	for i, v := range used {
		v.busy.Add(1)
		elements[i] = v.data
	}
	s.closing.Lock()
	s.abandoned++
	s.closing.Unlock()
	go func() {
		<-done
		runtime.KeepAlive(elements)
		for _, v := range used {
			v.busy.Add(-1)
		}
		s.closing.Lock()
		defer s.closing.Unlock()
		if s.abandoned--; s.abandoned == 0 && s.closed {
			_ = s.free()
		}
	}()
}

package seis

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestScorersShareWork checks that two calls run at the same time if another accumulator has
// computed scores beside this one before, and has ended. The first two calls wait for each other.
func TestScorersShareWork(t *testing.T) {
	t.Parallel()
	var s scorers
	end, other := s.begin(), s.begin()
	other()
	var both sync.WaitGroup
	both.Add(2)
	var mu sync.Mutex
	var calls []int
	workspaces := map[*workspace]bool{}
	own := new(workspace)
	if err := s.each(6, own, func(i int, work *workspace) error {
		mu.Lock()
		calls, workspaces[work] = append(calls, i), true
		mu.Unlock()
		if i < 2 {
			both.Done()
			both.Wait()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(calls); !slices.Equal(calls, []int{0, 1, 2, 3, 4, 5}) || len(workspaces) != 2 || !workspaces[own] {
		t.Errorf("calls for %v in %d workspaces, want one each for 0 to 5, in the caller's and another one", calls, len(workspaces))
	}
	if end(); s.running != 0 {
		t.Errorf("%d goroutines are still counted", s.running)
	}
}

// TestScorersUseOneGoroutine checks that each calls one after the other, in the caller's workspace,
// if other accumulators compute scores or never have, and that it stops at an error.
func TestScorersUseOneGoroutine(t *testing.T) {
	t.Parallel()
	for accumulators := 1; accumulators <= 2; accumulators++ {
		var s scorers
		for range accumulators {
			s.begin()
		}
		if s.join() {
			t.Errorf("another goroutine may join %d", accumulators)
		}
		own, failed := new(workspace), errors.New("failed")
		var calls []int // not guarded: the race detector finds a second goroutine
		err := s.each(6, own, func(i int, work *workspace) error {
			if calls = append(calls, i); work != own {
				t.Error("a call has another workspace")
			}
			if i == 3 {
				return failed
			}
			return nil
		})
		if !errors.Is(err, failed) || !slices.Equal(calls, []int{0, 1, 2, 3}) {
			t.Errorf("%d accumulators: calls for %v with the error %v, want 0 to 3 and %v", accumulators, calls, err, failed)
		}
	}
}

// TestScorersStop checks that an error of another goroutine is returned, that a panic, in either
// goroutine, becomes one of the caller's, and that no call follows one that has failed. The first
// call in each of the two goroutines waits for that of the other; then one of them fails. If that
// is the other goroutine, the caller waits until it has ended.
func TestScorersStop(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for _, c := range []struct {
		name     string
		own      bool // whether the call in the caller's goroutine fails
		crash    bool
		wantText string
	}{{"error", false, false, ""}, {"panic", false, true, "crash\n"}, {"the caller's panic", true, true, "crash\n"}} {
		t.Run(c.name, func(t *testing.T) {
			var s scorers
			end, other := s.begin(), s.begin()
			other()
			own := new(workspace)
			var both sync.WaitGroup
			both.Add(2)
			var calls atomic.Int32
			var err error
			recovered := func() (v any) {
				defer func() { v = recover() }()
				err = s.each(9, own, func(_ int, work *workspace) error {
					if calls.Add(1) > 2 {
						return nil
					}
					both.Done()
					both.Wait()
					if (work == own) != c.own {
						for work == own && s.others() {
							time.Sleep(time.Millisecond)
						}
						return nil
					}
					if c.crash {
						panic("crash")
					}
					return failed
				})
				return nil
			}()
			text, _ := recovered.(string)
			if !strings.HasPrefix(text, c.wantText) || c.crash != (text != "") || !c.crash && !errors.Is(err, failed) {
				t.Errorf("each returns %v and panics with %q", err, text)
			}
			if n := calls.Load(); n != 2 && !c.own {
				t.Errorf("%d calls, want 2", n)
			}
			if end(); s.running != 0 {
				t.Errorf("%d goroutines are still counted", s.running)
			}
		})
	}
}

// others reports whether another goroutine than the caller's is counted.
func (s *scorers) others() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running > 1
}

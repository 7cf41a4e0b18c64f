package seis

import (
	"errors"
	"slices"
	"sync"
	"testing"
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

// TestScorersPanic checks that a panic in another goroutine becomes one in the caller's.
func TestScorersPanic(t *testing.T) {
	t.Parallel()
	var s scorers
	end, other := s.begin(), s.begin()
	other()
	defer func() {
		if v := recover(); v != "crash" {
			t.Errorf("the caller recovers %v, want crash", v)
		}
		if end(); s.running != 0 {
			t.Errorf("%d goroutines are still counted", s.running)
		}
	}()
	own, crashed := new(workspace), make(chan struct{})
	err := s.each(2, own, func(_ int, work *workspace) error {
		if work != own {
			defer close(crashed)
			panic("crash")
		}
		<-crashed
		return nil
	})
	t.Errorf("each returned %v, want a panic", err)
}

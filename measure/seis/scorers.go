package seis

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// scorers counts the accumulators that compute scores at the same time. When fewer are left than at
// most, cores are probably idle: the rest then use further goroutines for their halves.
type scorers struct {
	mu      sync.Mutex
	running int // goroutines that compute scores
	most    int // the largest number of them so far
}

// begin counts a further accumulator. The caller must call end once.
func (s *scorers) begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	s.most = max(s.most, s.running)
	return s.end
}

func (s *scorers) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// join counts a helper goroutine, unless as many as ever compute scores.
func (s *scorers) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= s.most {
		return false
	}
	s.running++
	return true
}

// each calls f for 0 to n - 1, in the caller's goroutine (after begin) and as many as join allows.
// Each has a workspace, the caller its own. After an error it begins no others. A panic is repeated
// once all have ended, with value and stack.
func (s *scorers) each(n int, own *workspace, f func(i int, work *workspace) error) error {
	var others errgroup.Group
	var mu sync.Mutex // guards next and crash
	next, crash := 0, ""
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		i = next
		next = min(next+1, n)
		return i, i < n
	}
	stop := func(why string) {
		mu.Lock()
		defer mu.Unlock()
		next, crash = n, cmp.Or(crash, why)
	}
	run := func(work *workspace, share func()) error {
		defer func() {
			if v := recover(); v != nil {
				stop(fmt.Sprintf("%v\n%s", v, debug.Stack()))
			}
		}()
		for i, ok := take(); ok; i, ok = take() {
			share()
			if err := f(i, work); err != nil {
				stop("")
				return err
			}
		}
		return nil
	}
	err := run(own, func() {
		for s.join() {
			others.Go(func() error {
				defer s.end()
				return run(new(workspace), func() {})
			})
		}
	})
	other := others.Wait()
	if crash != "" {
		panic(crash)
	}
	return cmp.Or(err, other)
}

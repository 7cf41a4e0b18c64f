package seis

import (
	"cmp"
	"sync"

	"golang.org/x/sync/errgroup"
)

// scorers counts the accumulators whose scores are being computed at the same time. When there are
// no more of them to begin with, those that have not ended share their work with further
// goroutines, so that no core is idle while the last large layers are scored.
type scorers struct {
	mu      sync.Mutex
	running int // goroutines that compute scores
	most    int // the largest number so far: the number of cores that the caller uses
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

// join counts a goroutine that shares the work of an accumulator, if a core is idle.
func (s *scorers) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= s.most {
		return false
	}
	s.running++
	return true
}

// each calls f for 0 to n - 1, in the goroutine of the caller, which has called begin, and in
// others while cores are idle. The caller's calls get its workspace, those at the same time others.
// It returns an error of one of the calls, after which it begins no others. If one panics, each
// panics in the goroutine of the caller, who may recover.
func (s *scorers) each(n int, own *workspace, f func(i int, work *workspace) error) error {
	var others errgroup.Group
	var mu sync.Mutex // guards next and crash
	next := 0
	var crash any // the value that another goroutine panicked with
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		i = next
		next = min(next+1, n)
		return i, i < n
	}
	stop := func() {
		mu.Lock()
		defer mu.Unlock()
		next = n
	}
	run := func(work *workspace, share func()) error {
		for i, ok := take(); ok; i, ok = take() {
			share()
			if err := f(i, work); err != nil {
				stop()
				return err
			}
		}
		return nil
	}
	err := run(own, func() {
		for s.join() {
			others.Go(func() error {
				defer s.end()
				defer func() {
					if v := recover(); v != nil {
						mu.Lock()
						defer mu.Unlock()
						next, crash = n, v
					}
				}()
				return run(new(workspace), func() {})
			})
		}
	})
	other := others.Wait()
	if crash != nil {
		panic(crash)
	}
	return cmp.Or(err, other)
}

package dataset

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
)

// ReadOptions bounds what Read does ahead of its caller.
type ReadOptions struct {
	Workers int   // goroutines that decode; 0: one for each core
	Ahead   int64 // bytes of samples that are decoded or being decoded and not yet taken, at least one sample; 0: 64 MiB
}

// Read yields samples of a source in the order of indices, which are places in it. They are decoded ahead on other
// goroutines, within a bound on memory that counts samples as large as the first.
//
// A sample that cannot be read is yielded in its place, with its name and a *BadSample, and reading goes on. Any other
// error, that of a done context among them, is the last thing to be yielded. When the loop ends, however it ends, no goroutine is left.
func Read(ctx context.Context, src Source, indices []int, f Frame, o ReadOptions) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		if len(indices) == 0 {
			return
		}
		first := readOne(ctx, src, indices[0], f)
		if !first.yield(yield) || len(indices) == 1 {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		taken := 1
		for r := range prefetch(ctx, &group, src, indices[1:], f, o, first.bytes()) {
			if !(<-r).yield(yield) {
				return
			}
			taken++
		}
		if taken < len(indices) {
			yield(Sample{}, ctx.Err())
		}
	}
}

// A readResult is a sample or why there is none.
type readResult struct {
	sample Sample
	err    error
}

func readOne(ctx context.Context, src Source, i int, f Frame) readResult {
	if err := ctx.Err(); err != nil {
		return readResult{err: err}
	}
	s, err := src.At(ctx, i, f)
	return readResult{s, err}
}

// yield hands the reading over and reports whether to go on.
func (r readResult) yield(yield func(Sample, error) bool) bool {
	var bad *BadSample
	return yield(r.sample, r.err) && (r.err == nil || errors.As(r.err, &bad))
}

func (r readResult) bytes() int64 {
	n := r.sample.Input.Len()
	if r.sample.Moved != nil {
		n += r.sample.Moved.Len()
	}
	if r.sample.Waveform != nil {
		n += len(r.sample.Waveform.Data)
	}
	return int64(4 * n)
}

// prefetch starts the workers. The channel that it returns has a place for each sample, in order, which is filled when the
// sample is decoded; its capacity is what bounds the samples in flight. It is closed at the end or when ctx is done.
func prefetch(ctx context.Context, group *sync.WaitGroup, src Source, indices []int, f Frame, o ReadOptions, bytes int64) <-chan chan readResult {
	workers, depth := o.bounds(bytes)
	jobs := make(chan job)
	order := make(chan chan readResult, depth-1) // and one that waits to enter
	group.Go(func() {
		defer close(order)
		defer close(jobs)
		for _, i := range indices {
			j := job{i, make(chan readResult, 1)}
			if !send(ctx, jobs, j) || !send(ctx, order, j.done) {
				return
			}
		}
	})
	for range workers {
		group.Go(func() {
			for j := range jobs {
				j.done <- readOne(ctx, src, j.index, f)
			}
		})
	}
	return order
}

// A job is a sample to read and where to put it, which has room for it.
type job struct {
	index int
	done  chan readResult
}

// send reports whether v was taken before ctx was done.
func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// bounds are the workers, and the samples in flight beside the one that the caller holds.
func (o ReadOptions) bounds(bytes int64) (workers, depth int) {
	workers, budget := o.Workers, o.Ahead
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if budget <= 0 {
		budget = 64 << 20
	}
	const most = 4096 // samples: enough for the smallest
	depth = int(min(most, max(1, budget/max(1, bytes))))
	return min(workers, depth), depth
}

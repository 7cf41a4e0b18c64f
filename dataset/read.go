package dataset

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
)

// ReadOptions bounds how far Read decodes ahead.
type ReadOptions struct {
	Workers int   // decoding goroutines; 0: one for each core
	Ahead   int64 // bytes of samples decoded ahead, at least one sample; 0: 64 MiB
}

// Read yields the samples of a source at the given indices, in that order, each in the frame f.
// Other goroutines decode ahead within a bound on memory, which assumes that all samples are as
// large as the first.
//
// A sample that cannot be read is yielded in its position, with its name and a *BadSample, and
// reading continues. Any other error, including that of a cancelled context, ends the sequence.
// No goroutine is left when the loop ends.
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

// A readResult is a sample, or the error of reading it.
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

// yield passes the result to the caller and reports whether to continue.
func (r readResult) yield(yield func(Sample, error) bool) bool {
	var bad *BadSample
	return yield(r.sample, r.err) && (r.err == nil || errors.As(r.err, &bad))
}

// bytes returns the memory of the sample's values.
func (r readResult) bytes() int64 {
	n := r.sample.Input.Len()
	if r.sample.Transformed != nil { // the transformed input, of a ready-made pair
		n += r.sample.Transformed.Len()
	}
	if r.sample.Waveform != nil {
		n += len(r.sample.Waveform.Data)
	}
	return int64(4 * n)
}

// prefetch starts the workers. It returns a channel that yields, for each sample in order, another
// channel, which receives the decoded sample. The capacity of the returned channel bounds the
// number of samples that are decoded but not yet received; bytes is the size of one. The returned
// channel is closed at the end, or when ctx is done.
func prefetch(ctx context.Context, group *sync.WaitGroup, src Source, indices []int, f Frame, o ReadOptions, bytes int64) <-chan chan readResult {
	workers, depth := o.bounds(bytes)
	jobs := make(chan job)
	order := make(chan chan readResult, depth-1) // plus one that waits to be sent
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

// A job is the index of a sample to read, and a buffered channel for the result.
type job struct {
	index int
	done  chan readResult
}

// send sends v and reports whether it was received before ctx was done.
func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// bounds returns the number of workers, and the number of samples of the given size in bytes that
// may be decoded ahead.
func (o ReadOptions) bounds(bytes int64) (workers, depth int) {
	workers, budget := o.Workers, o.Ahead
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if budget <= 0 {
		budget = 64 << 20
	}
	const most = 4096 // samples, enough for the smallest ones
	depth = int(min(most, max(1, budget/max(1, bytes))))
	return min(workers, depth), depth
}

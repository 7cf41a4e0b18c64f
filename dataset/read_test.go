package dataset

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A slow source waits before it returns a sample. It counts the samples whose reading has begun.
type slow struct {
	labelledSource
	wait  func(i int) time.Duration
	begun *atomic.Int64
}

func (s slow) At(ctx context.Context, i int, f Frame) (Sample, error) {
	s.begun.Add(1)
	time.Sleep(s.wait(i))
	return s.labelledSource.At(ctx, i, f)
}

// newSlow returns a source of n samples. wait returns the time that reading sample i takes.
func newSlow(n int, wait func(i int) time.Duration) slow {
	return slow{labelledSource{labels: make([]int, n), bad: map[int]error{}}, wait, new(atomic.Int64)}
}

// TestReadKeepsOrderAndBound checks that samples come in the requested order, and that the number
// of samples read ahead of the loop keeps within ReadOptions.Ahead, a number of bytes: a sample of
// labelledSource is one float32, 4 bytes. pause is the time that the loop spends on a sample.
// synctest simulates time, so the tests do not depend on the speed of the machine.
func TestReadKeepsOrderAndBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		delays := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 30).Draw(r, "delays")
		order := rapid.SliceOfN(rapid.IntRange(0, len(delays)-1), 0, 40).Draw(r, "indices")
		workers, ahead := rapid.IntRange(0, 5).Draw(r, "workers"), rapid.Int64Range(1, 10).Draw(r, "ahead")
		pause := rapid.IntRange(0, 60).Draw(r, "pause")
		var got []int
		most := int64(0)
		synctest.Test(t, func(t *testing.T) {
			src := newSlow(len(delays), func(i int) time.Duration { return time.Duration(delays[i]) })
			for s, err := range Read(t.Context(), src, order, Frame{}, ReadOptions{Workers: workers, Ahead: 4 * ahead}) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, s.Index)
				time.Sleep(time.Duration(pause))
				most = max(most, src.begun.Load()-int64(len(got)))
			}
		})
		if !slices.Equal(got, order) {
			r.Fatalf("read %v, want %v", got, order)
		}
		if most > ahead {
			r.Fatalf("%d samples ahead, more than the bound %d", most, ahead)
		}
	})
}

// Read uses the first sample alone to learn the size of a sample.
func TestReadWorksAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// Samples 0 to 40, each of which takes a second.
		src := newSlow(41, func(int) time.Duration { return time.Second })
		start := time.Now()
		for _, err := range Read(t.Context(), src, Indices(41), Frame{}, ReadOptions{Workers: 4}) {
			if err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took != 11*time.Second {
			t.Errorf("41 samples of a second took four workers %v, want 11 s: the first alone, then four at a time", took)
		}
	})
}

// TestReadNamesBadSamples checks that Read goes on after a BadSample, the error of one sample, and
// stops after another error, that of sample 4.
func TestReadNamesBadSamples(t *testing.T) {
	t.Parallel()
	for first := range 2 {
		src := newSlow(6, func(int) time.Duration { return 0 })
		src.bad[first] = &BadSample{Name: "sample", Err: errors.New("truncated")}
		src.bad[4] = errors.New("the disk is gone")
		var got []string
		for s, err := range Read(t.Context(), src, Indices(6), Frame{}, ReadOptions{}) {
			if err != nil {
				got = append(got, s.Name+": "+err.Error())
			}
		}
		want := []string{src.Describe(first).Name + ": sample: truncated", "sample 4: the disk is gone"}
		if !slices.Equal(got, want) {
			t.Errorf("errors %q, want %q and nothing after", got, want)
		}
	}
}

// Describe returns a sample without waiting.
func (s slow) Describe(i int) Sample {
	sample, _ := s.labelledSource.At(context.Background(), i, Frame{})
	return sample
}

// TestReadStops checks that Read stops if the loop ends or the context does. The bounds 15 and 40
// are loose: some 10 and 30 samples are expected.
func TestReadStops(t *testing.T) {
	t.Parallel()
	const samples = 1000 // many more than are read
	// synctest fails if a goroutine is left.
	t.Run("break", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			src := newSlow(samples, func(int) time.Duration { return time.Second })
			for s := range Read(t.Context(), src, Indices(samples), Frame{}, ReadOptions{Workers: 3}) {
				if s.Index == 5 {
					break
				}
			}
			if n := src.begun.Load(); n > 15 {
				t.Errorf("%d samples were started, want at most 15 for the six that were used", n)
			}
		})
	})
	t.Run("deadline of the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+1)
			defer cancel()
			src := newSlow(samples, func(int) time.Duration { return time.Second })
			start := time.Now()
			var last error
			n := 0
			for _, err := range Read(ctx, src, Indices(samples), Frame{}, ReadOptions{Workers: 3}) {
				n++
				last = err
			}
			if !errors.Is(last, context.DeadlineExceeded) {
				t.Errorf("the last error is %v, want that of the context", last)
			}
			if took := time.Since(start); took > 11*time.Second {
				t.Errorf("stopped after %v, want at most a second after the 10 s of the context", took)
			}
			if n > 40 {
				t.Errorf("%d samples of a second by three workers in ten seconds, want at most 40", n)
			}
		})
	})
	t.Run("cancelled before the start", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		n := 0
		for _, err := range Read(ctx, newSlow(3, nil), Indices(3), Frame{}, ReadOptions{}) {
			if n++; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		}
		if n != 1 {
			t.Errorf("%d iterations, want one, with the error", n)
		}
	})
}

package video

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// A clip is frames in order, c x h x w in [0, 1], all of one size. A frame may be overwritten once
// the next is asked for.
type clip struct {
	name   string
	frames func(ctx context.Context) iter.Seq2[tensor.Tensor, error]
}

// A builder takes frames and writes patches.
type builder struct {
	Patches
	cuts     float64 // a change that begins a new scene; above 1: none does
	most     int     // frames of a clip; 0: all
	src      *Source
	filter   *whitener
	scratch  []float32
	previous histogram
}

// build reads clips one after the other.
func build(ctx context.Context, p Patches, cuts float64, most int, clips []clip) (*Source, error) {
	kept, err := newSpool(p.Channels * p.Size * p.Size)
	if err != nil {
		return nil, err
	}
	b := &builder{Patches: p, cuts: cuts, most: most, src: &Source{patches: p, spool: kept}}
	for i, c := range clips {
		if err := b.clip(ctx, i, c); err != nil {
			kept.close()
			return nil, err
		}
	}
	if err := kept.out.Flush(); err != nil {
		kept.close()
		return nil, fmt.Errorf("writing the temporary file of patches: %w", err)
	}
	return b.src, nil
}

// clip reads the frames of one clip, which begins a scene.
func (b *builder) clip(ctx context.Context, number int, c clip) error {
	n := 0
	var size [2]int
	for frame, err := range c.frames(ctx) {
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		now := [2]int{frame.Shape[1], frame.Shape[2]}
		if n > 0 && now != size {
			return fmt.Errorf("%s: frame %d is %d x %d pixels and those before it %d x %d: all frames of a sequence are of one size",
				c.name, n+1, now[1], now[0], size[1], size[0])
		}
		size = now
		if err := b.frame(c.name, number, n, frame); err != nil {
			return fmt.Errorf("%s: frame %d: %w", c.name, n+1, err)
		}
		if n++; n == b.most {
			break
		}
	}
	b.endScene()
	if n == 0 {
		return fmt.Errorf("%s: there are no frames", c.name)
	}
	return ctx.Err()
}

// frame takes frame n of a clip.
func (b *builder) frame(name string, clip, n int, full tensor.Tensor) error {
	frame, err := b.reduce(full)
	if err != nil {
		return err
	}
	h := histogramOf(frame)
	if n == 0 || change(h, b.previous) > b.cuts {
		b.endScene()
		if err := b.startScene(name, clip, n, frame.Shape[1], frame.Shape[2]); err != nil {
			return err
		}
	}
	b.previous = h
	sc := &b.src.scenes[len(b.src.scenes)-1]
	if !b.Raw {
		frame = frame.Clone() // a frame that needed no reduction is the reader's
		sc.extents = append(sc.extents, b.whiten(frame))
	}
	sc.frames++
	return b.put(sc, frame)
}

// whiten filters the planes of a frame and returns its extent.
func (b *builder) whiten(frame tensor.Tensor) float64 {
	h, w := frame.Shape[1], frame.Shape[2]
	if b.filter == nil || b.filter.h != h || b.filter.w != w {
		b.filter, b.scratch = newWhitener(h, w), make([]float32, len(frame.Data))
	}
	for c := range frame.Shape[0] {
		b.filter.apply(frame.Data[c*h*w : (c+1)*h*w])
	}
	return extent(frame.Data, b.scratch)
}

func (b *builder) put(sc *scene, frame tensor.Tensor) error {
	patch := make([]float32, b.src.spool.values)
	for _, at := range sc.places {
		cut(patch, frame, at, b.Size)
		for _, v := range patch {
			if v != v || math.IsInf(float64(v), 0) {
				return errors.New("it holds values that are no numbers")
			}
		}
		if err := b.src.spool.put(patch); err != nil {
			return err
		}
	}
	return nil
}

// startScene draws the places of a scene, keyed by the clip's place among the clips and the frame
// that it starts with.
func (b *builder) startScene(name string, clip, frame, h, w int) error {
	top, left, height, width := b.area(h, w)
	if b.Size > height || b.Size > width {
		return fmt.Errorf("patches of %d pixels do not fit into frames of %d x %d: take smaller patches", b.Size, w, h)
	}
	draw := seed.Rand(b.Seed, "video: places", clip, frame)
	places := make([]place, b.Places)
	for i := range places {
		places[i] = place{top + draw.IntN(height-b.Size+1), left + draw.IntN(width-b.Size+1)}
	}
	b.src.scenes = append(b.src.scenes, scene{name: name, first: b.src.spool.n, places: places})
	return nil
}

func (b *builder) endScene() {
	if k := len(b.src.scenes); k > 0 && !b.Raw {
		if sc := &b.src.scenes[k-1]; sc.scales == nil {
			sc.scales = smoothed(sc.extents)
		}
	}
}

// longest is the number of frames of the longest scene.
func (s *Source) longest() int {
	longest := 0
	for _, sc := range s.scenes {
		longest = max(longest, sc.frames)
	}
	return longest
}

// checkWindow sees to it that a trajectory fits into the longest scene.
func (p Patches) checkWindow(longest int) error {
	switch want := 2*p.Reach + 1; {
	case longest == 1:
		return errors.New("there is one frame: nothing moves; give a video, several frames, or let a camera move over the image")
	case longest < want:
		return fmt.Errorf("the longest scene has %d frames, and a trajectory takes %d: give longer videos, or a smaller gamma", longest, want)
	}
	return nil
}

var _ dataset.Trajectories = (*Source)(nil)

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

// A clip is a sequence of frames, c x h x w in [0, 1], all of one size. The next frame may reuse
// the memory of the previous one.
type clip struct {
	name   string
	frames func(ctx context.Context) iter.Seq2[tensor.Tensor, error]
}

// A builder reads frames and writes patches.
type builder struct {
	Patches
	cuts      float64   // a change of the grey histogram (0 to 1) above it is a cut
	maxFrames int       // largest number of frames that are read of a clip; 0: all
	src       *Source   // the result; its spool is the temporary file of the patches
	filter    *whitener // band-pass for frames of the size of the last one; nil before the first
	scratch   []float32 // buffer for the function extent (contrast.go)
	previous  histogram // of the last frame
}

// build returns the patches of the clips, in order.
func build(ctx context.Context, p Patches, cuts float64, maxFrames int, clips []clip) (*Source, error) {
	spool, err := newSpool(p.Channels * p.Size * p.Size)
	if err != nil {
		return nil, err
	}
	b := &builder{Patches: p, cuts: cuts, maxFrames: maxFrames, src: &Source{patches: p, spool: spool}}
	for i, c := range clips {
		if err := b.addClip(ctx, i, c); err != nil {
			spool.close()
			return nil, err
		}
	}
	if err := spool.out.Flush(); err != nil {
		spool.close()
		return nil, fmt.Errorf("writing the temporary file of patches: %w", err)
	}
	return b.src, nil
}

// addClip reads the frames of one clip, which starts a new scene.
func (b *builder) addClip(ctx context.Context, number int, c clip) error {
	n := 0
	var size [2]int
	for frame, err := range c.frames(ctx) {
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		current := [2]int{frame.Shape[1], frame.Shape[2]}
		if n > 0 && current != size {
			return fmt.Errorf("%s: frame %d is %d x %d pixels and the earlier ones %d x %d: all frames of a sequence must have one size",
				c.name, n+1, current[1], current[0], size[1], size[0])
		}
		size = current
		if err := b.addFrame(c.name, number, n, frame); err != nil {
			return fmt.Errorf("%s: frame %d: %w", c.name, n+1, err)
		}
		if n++; n == b.maxFrames {
			break
		}
	}
	b.endScene()
	if n == 0 {
		return fmt.Errorf("%s: no frames", c.name)
	}
	return ctx.Err()
}

// addFrame reduces the size of frame n of a clip, starts a new scene at a cut, filters the frame
// unless patches are raw, and writes its patches. full is the frame in its original size.
func (b *builder) addFrame(name string, clip, n int, full tensor.Tensor) error {
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
		frame = frame.Clone() // the reader of the clip owns the values if reduce changed nothing
		sc.extents = append(sc.extents, b.whiten(frame))
	}
	sc.frames++
	return b.put(sc, frame)
}

// whiten filters the planes of a frame and returns its extent (see contrast.go).
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

// put writes the patches of a frame, one for each place of the scene.
func (b *builder) put(sc *scene, frame tensor.Tensor) error {
	patch := make([]float32, b.src.spool.values)
	for _, at := range sc.places {
		copyPatch(patch, frame, at, b.Size)
		for _, v := range patch {
			if v != v || math.IsInf(float64(v), 0) {
				return errors.New("it contains values that are not finite")
			}
		}
		if err := b.src.spool.put(patch); err != nil {
			return err
		}
	}
	return nil
}

// startScene draws the positions of the patches of a scene. The seed, the index of the clip and the
// first frame of the scene determine them.
func (b *builder) startScene(name string, clip, frame, h, w int) error {
	top, left, height, width := b.area(h, w) // the part of the frame that contains all patches
	if b.Size > height || b.Size > width {
		return fmt.Errorf("patches of %d pixels do not fit into frames of %d x %d: use smaller patches", b.Size, w, h)
	}
	draw := seed.Rand(b.Seed, "video: places", clip, frame)
	places := make([]place, b.Places)
	for i := range places {
		places[i] = place{top + draw.IntN(height-b.Size+1), left + draw.IntN(width-b.Size+1)}
	}
	b.src.scenes = append(b.src.scenes, scene{name: name, first: b.src.spool.n, places: places})
	return nil
}

// endScene computes the contrast scales of the last scene, which are extents smoothed over time
// (see contrast.go), unless patches are raw.
func (b *builder) endScene() {
	if k := len(b.src.scenes); k > 0 && !b.Raw {
		if sc := &b.src.scenes[k-1]; sc.scales == nil {
			sc.scales = scalesOf(sc.extents)
		}
	}
}

// longestScene returns the number of frames of the longest scene.
func (s *Source) longestScene() int {
	longest := 0
	for _, sc := range s.scenes {
		longest = max(longest, sc.frames)
	}
	return longest
}

// checkWindow returns an error if a trajectory does not fit into the longest scene, of the given
// number of frames.
func (p Patches) checkWindow(longest int) error {
	switch want := 2*p.Reach + 1; {
	case longest == 1:
		return errors.New("there is only one frame: use a video, several frames, or a camera that moves over the image")
	case longest < want:
		return fmt.Errorf("the longest scene has %d frames, fewer than the %d of a trajectory: use longer videos or a smaller gamma", longest, want)
	}
	return nil
}

var _ dataset.Trajectories = (*Source)(nil)

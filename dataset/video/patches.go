package video

import (
	"cmp"
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
)

// Patches says what samples are made of frames.
type Patches struct {
	Width, Height int    // what frames are reduced to, centre-cropped where their proportions are others; 0: 320 x 180. Smaller frames stay as they are
	Channels      int    // 1: grey, 3: colour; 0: 1
	Raw           bool   // frames are neither whitened nor scaled in contrast
	Size          int    // side of a patch in pixels; 0: 14
	Places        int    // of patches in a scene, drawn uniformly; 0: 32
	Crop          int    // side of the square in the middle of the frame that places are drawn in; 0: all of the frame
	Reach         int    // trajectories go from -Reach to Reach frames; 0: 5
	Seed          uint64 // of the places
}

func (p Patches) complete() Patches {
	p.Width, p.Height = cmp.Or(p.Width, 320), cmp.Or(p.Height, 180)
	p.Channels, p.Size = cmp.Or(p.Channels, 1), cmp.Or(p.Size, 14)
	p.Places, p.Reach = cmp.Or(p.Places, 32), cmp.Or(p.Reach, 5)
	return p
}

// Bounds of what options may ask for.
const (
	maxSide   = dataset.MaxSyntheticSide
	maxPlaces = 1 << 16
	maxReach  = 1000
)

func (p Patches) check() error {
	switch {
	case p.Width < 4 || p.Height < 4 || p.Width > maxSide || p.Height > maxSide:
		return fmt.Errorf("frames of %d x %d: sides are 4 to %d pixels", p.Width, p.Height, maxSide)
	case p.Channels != 1 && p.Channels != 3:
		return fmt.Errorf("%d channels: 1 is grey, 3 is colour", p.Channels)
	case p.Size < 1 || p.Places < 1 || p.Places > maxPlaces || p.Reach < 1 || p.Reach > maxReach || p.Crop < 0:
		return fmt.Errorf("patches of %d pixels at %d places, %d frames around, in a square of %d: they are at least 1, places at most %d, frames at most %d",
			p.Size, p.Places, p.Reach, p.Crop, maxPlaces, maxReach)
	case p.Size > p.Width || p.Size > p.Height:
		return fmt.Errorf("patches of %d pixels do not fit into frames of %d x %d: take smaller patches or larger frames", p.Size, p.Width, p.Height)
	case p.Crop > 0 && p.Crop < p.Size:
		return fmt.Errorf("patches of %d pixels do not fit into the square of %d that they are to lie in", p.Size, p.Crop)
	}
	return nil
}

// reduce brings a frame to the channels and to the size; it is never enlarged.
func (p Patches) reduce(frame tensor.Tensor) (tensor.Tensor, error) {
	frame, err := dataset.Frame{Channels: p.Channels}.Tensor(frame)
	if err != nil {
		return frame, err
	}
	h, w := frame.Shape[1], frame.Shape[2]
	out := dataset.Frame{Height: min(h, p.Height), Width: min(w, p.Width), Resize: min(h, w)}
	if h > p.Height && w > p.Width {
		out.Resize = covering(h, w, p.Height, p.Width)
	}
	return out.Tensor(frame)
}

// covering is the short side of a frame of h x w after it was shrunk as far as it still covers
// height x width.
func covering(h, w, height, width int) int {
	scale := max(float64(height)/float64(h), float64(width)/float64(w))
	short := int(scale * float64(min(h, w)))
	// The long side is rounded down, so this may be a pixel short.
	for short*h/min(h, w) < height || short*w/min(h, w) < width {
		short++
	}
	return short
}

// A place is the top left corner of patches.
type place struct{ y, x int }

// area is the part of a frame of h x w that patches may lie in: its corner and its sides.
func (p Patches) area(h, w int) (y, x, height, width int) {
	if p.Crop == 0 {
		return 0, 0, h, w
	}
	height, width = min(h, p.Crop), min(w, p.Crop)
	return (h - height) / 2, (w - width) / 2, height, width
}

// cut copies the patch at a place of a frame, c x h x w, to dst.
func cut(dst []float32, frame tensor.Tensor, at place, size int) {
	c, h, w := frame.Shape[0], frame.Shape[1], frame.Shape[2]
	for k := range c {
		for i := range size {
			from := frame.Data[(k*h+at.y+i)*w+at.x:]
			copy(dst[(k*size+i)*size:][:size], from)
		}
	}
}

package video

import (
	"cmp"
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
)

// Patches are the options of the patches.
type Patches struct {
	// Width and Height are the size of reduced frames in pixels; 0: 320 x 180. Frames of another
	// aspect ratio are cropped at the centre. Smaller frames are not enlarged.
	Width, Height int
	Channels      int  // 1: grey, 3: colour; 0: 1
	Raw           bool // skip whitening and contrast scaling
	Size          int  // side of a patch in pixels; 0: 14
	// Places is the number of places in a scene. Each is the position of one patch in every frame,
	// drawn uniformly; 0: 32.
	Places int
	// Crop is the side in pixels of the square in the centre of the frame that contains all
	// patches; 0: the whole frame.
	Crop  int
	Reach int    // trajectories go from Reach frames before a patch to Reach frames after; 0: 5
	Seed  uint64 // seed of the places
}

// complete returns the options with their defaults.
func (p Patches) complete() Patches {
	p.Width, p.Height = cmp.Or(p.Width, 320), cmp.Or(p.Height, 180)
	p.Channels, p.Size = cmp.Or(p.Channels, 1), cmp.Or(p.Size, 14)
	p.Places, p.Reach = cmp.Or(p.Places, 32), cmp.Or(p.Reach, 5)
	return p
}

// Bounds of the options.
const (
	maxSide   = dataset.MaxSyntheticSide
	maxPlaces = 1 << 16
	maxReach  = 1000
)

func (p Patches) check() error {
	switch {
	case p.Width < 4 || p.Height < 4 || p.Width > maxSide || p.Height > maxSide:
		return fmt.Errorf("frames of %d x %d: sides must be 4 to %d pixels", p.Width, p.Height, maxSide)
	case p.Channels != 1 && p.Channels != 3:
		return fmt.Errorf("%d channels: use 1 (grey) or 3 (colour)", p.Channels)
	case p.Size < 1 || p.Places < 1 || p.Places > maxPlaces || p.Reach < 1 || p.Reach > maxReach || p.Crop < 0:
		return fmt.Errorf("patches of %d pixels at %d places, %d frames around, in a square of %d: use at least 1 of each, at most %d places and %d frames",
			p.Size, p.Places, p.Reach, p.Crop, maxPlaces, maxReach)
	case p.Size > p.Width || p.Size > p.Height:
		return fmt.Errorf("patches of %d pixels do not fit into frames of %d x %d: use smaller patches or larger frames", p.Size, p.Width, p.Height)
	case p.Crop > 0 && p.Crop < p.Size:
		return fmt.Errorf("patches of %d pixels do not fit into the crop of %d pixels", p.Size, p.Crop)
	}
	return nil
}

// reduce converts a frame to p.Channels channels, reduces it so that it just covers p.Width x
// p.Height, and crops the rest. It does not enlarge frames.
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

// covering returns the short side to which a frame of h x w is resized, so that it just covers
// height x width.
func covering(h, w, height, width int) int {
	scale := max(float64(height)/float64(h), float64(width)/float64(w))
	short := int(scale * float64(min(h, w)))
	// The long side is rounded down, so it may be a pixel short.
	for short*h/min(h, w) < height || short*w/min(h, w) < width {
		short++
	}
	return short
}

// A place is the top left corner of a patch, in pixels of the reduced frame. It is the same in all
// frames of a scene.
type place struct{ y, x int }

// area returns the part of a frame of h x w that contains all patches: its corner and its sides.
func (p Patches) area(h, w int) (y, x, height, width int) {
	if p.Crop == 0 {
		return 0, 0, h, w
	}
	height, width = min(h, p.Crop), min(w, p.Crop)
	return (h - height) / 2, (w - width) / 2, height, width
}

// copyPatch copies the patch at a place of a frame, c x h x w, to dst.
func copyPatch(dst []float32, frame tensor.Tensor, at place, size int) {
	c, h, w := frame.Shape[0], frame.Shape[1], frame.Shape[2]
	for k := range c {
		for i := range size {
			from := frame.Data[(k*h+at.y+i)*w+at.x:]
			copy(dst[(k*size+i)*size:][:size], from)
		}
	}
}

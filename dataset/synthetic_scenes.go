package dataset

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// ScenesOptions are the options of OpenScenes.
type ScenesOptions struct {
	// ShapesOptions are the options of OpenShapes. The defaults of three ranges differ: Scale is
	// 0.2 to 0.45, and X and Y are -0.4 to 0.4, so that figures may overlap and touch the border.
	ShapesOptions
	Figures  []int // smallest and largest number of figures of an image; nil: 1 to 4
	Textured bool  // the background is a texture; else black
}

// maxFigures is the largest number of figures of an image.
const maxFigures = 100

// scenesVersion changes when the same options give different samples.
const scenesVersion = 1

// Scenes is a synthetic source of images of several figures, with the class of each pixel. See
// OpenScenes.
type Scenes struct {
	metadata
	options ScenesOptions
}

// OpenScenes returns a source of images of several figures. Their number is drawn uniformly, and so
// are kind, scale, rotation, position and hue of each figure. Later figures cover earlier ones. The
// mask of a sample has the class of each pixel: 1 + k where a figure of kind k covers at least half
// of the pixel, otherwise 0, the background. A textured background is the product of two gratings
// of random frequency, orientation and phase, which varies between two random dark colours.
//
// If Figures is [1, 1], the label of an image is the kind of its figure. Else no image has a label.
// Sample i depends on i and on all options but N. Options out of range are an error. Errors and
// names of samples say shapes, since a study file has scenes as shapes with a number of figures.
func OpenScenes(o ScenesOptions) (*Scenes, error) {
	if o.Scale == nil {
		o.Scale = []float64{0.2, 0.45}
	}
	for _, r := range []*[]float64{&o.X, &o.Y} {
		if *r == nil {
			*r = []float64{-0.4, 0.4}
		}
	}
	if o.Figures == nil {
		o.Figures = []int{1, 4}
	}
	o.ShapesOptions, o.Figures = o.withDefaults(), slices.Clone(o.Figures)
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("shapes: %w", err)
	}
	if f := o.Figures; len(f) != 2 || f[0] < 0 || f[0] > f[1] || f[1] > maxFigures {
		return nil, fmt.Errorf("shapes: figures is %v: it is the smallest and the largest number, within 0 to %d", f, maxFigures)
	}
	s := &Scenes{metadata{fingerprint: syntheticFingerprint("scenes", scenesVersion, o)}, o}
	if s.single() {
		s.classes = o.Kinds
	}
	return s, nil
}

// single reports whether every image has exactly one figure.
func (s *Scenes) single() bool { return slices.Equal(s.options.Figures, []int{1, 1}) }
func (s *Scenes) Len() int     { return s.options.N }

// truthClasses returns nil: the pixels of a mask are classes, not identifiers of an annotation
// file.
func (s *Scenes) truthClasses() []TruthClass { return nil }

// maskClasses returns the names of the classes of pixels.
func (s *Scenes) maskClasses() []string {
	return append([]string{"background"}, s.options.Kinds...)
}

// MaskClasses returns the names of the classes of pixels of a source with masks. It returns nil if
// they are not known, as for a folder of masks, or if the source has no masks.
func MaskClasses(src Source) []string {
	if s, ok := find[interface{ maskClasses() []string }](src); ok {
		return s.maskClasses()
	}
	return nil
}

// figures returns the figures of sample i and their kinds.
func (s *Scenes) figures(i int) (figures []Figure, kinds []int) {
	o := s.options
	r := seed.Rand(o.Seed, "scenes", i)
	for range o.Figures[0] + r.IntN(o.Figures[1]-o.Figures[0]+1) {
		f, kind := o.draw(r)
		figures, kinds = append(figures, f), append(kinds, kind)
	}
	return figures, kinds
}

func (s *Scenes) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	o := s.options
	if err := checkAccess(ctx, "shapes", i, o.N); err != nil {
		return Sample{}, err
	}
	image, mask := tensor.New(o.Channels, o.Size, o.Size), tensor.New(1, o.Size, o.Size)
	if o.Textured {
		drawTexture(image, seed.Rand(o.Seed, "scenes: texture", i))
	}
	figures, kinds := s.figures(i)
	for k, f := range figures {
		f.paint(image, mask, kinds[k]+1)
	}
	input, err := frame.Tensor(image)
	if err != nil {
		return Sample{}, fmt.Errorf("shapes: framing sample %d: %w", i, err)
	}
	framed, err := frame.mask(mask)
	if err != nil {
		return Sample{}, fmt.Errorf("shapes: framing the mask of sample %d: %w", i, err)
	}
	label := NoLabel
	if s.single() {
		label = kinds[0]
	}
	return Sample{Index: i, Name: fmt.Sprintf("shapes#%d", i), Input: input, Label: label, Truth: &Truth{Mask: framed}}, nil
}

// paint draws the figure over an image, c x h x w. It sets the mask, 1 x h x w, to the class of the
// figure where it covers at least half of the pixel.
func (f Figure) paint(image, mask tensor.Tensor, class int) {
	o, _ := findOutline(f.Kind)
	colour := []float32{1}
	if image.Shape[0] == 3 {
		colour = hueColour(f.Hue)
	}
	h, w := image.Shape[1], image.Shape[2]
	f.cover(o, h, w, func(i, j int, coverage float32) {
		for c, v := range colour {
			at := &image.Data[(c*h+i)*w+j]
			*at += coverage * (v - *at)
		}
		if coverage >= 0.5 {
			mask.Data[i*w+j] = float32(class)
		}
	})
}

// drawTexture fills an image with the product of two gratings between two dark colours.
func drawTexture(image tensor.Tensor, r *rand.Rand) {
	c, h, w := image.Shape[0], image.Shape[1], image.Shape[2]
	var dark, light [3]float32
	for k := range dark {
		dark[k], light[k] = float32(0.3*r.Float64()), float32(0.3+0.3*r.Float64())
	}
	type grating struct{ x, y, phase float64 }
	var gratings [2]grating
	for k := range gratings {
		// 2 to 8 cycles in the image.
		frequency, angle := 2*math.Pi*(2+6*r.Float64()), math.Pi*r.Float64()
		gratings[k] = grating{frequency * math.Cos(angle), frequency * math.Sin(angle), 2 * math.Pi * r.Float64()}
	}
	for i := range h {
		for j := range w {
			v := 1.0
			for _, g := range gratings {
				v *= (1 + math.Sin(g.x*float64(j)/float64(w)+g.y*float64(i)/float64(h)+g.phase)) / 2
			}
			for k := range c {
				image.Data[(k*h+i)*w+j] = dark[k] + float32(v)*(light[k]-dark[k])
			}
		}
	}
}

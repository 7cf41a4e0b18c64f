package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// ShapesOptions are the options of OpenShapes. A range is a low and a high end. Each factor is
// drawn uniformly from its range, independently of the others. Equal ends fix a factor.
type ShapesOptions struct {
	N        int      // number of samples
	Size     int      // side of the square image in pixels; 0: 32
	Channels int      // 3: colour, 1: white on black; 0: 3
	Seed     uint64   // of the random numbers
	Kinds    []string // of figures, see ShapeKinds; a label is an index into this list. nil: all

	// The ranges of the factors, in the units that OpenShapes documents.
	Scale    []float64 // nil: 0.35 to 0.55
	Rotation []float64 // nil: 0 to 360
	X, Y     []float64 // nil: -0.15 to 0.15
	Hue      []float64 // nil: 0 to 360
}

// maxSynthetic is the largest number of samples of a synthetic source, a billion.
const maxSynthetic = 1_000_000_000

// shapesVersion changes when the same options give different samples.
const shapesVersion = 1

// Shapes is a synthetic source of images of one figure on black, with known factors. See
// OpenShapes.
type Shapes struct {
	metadata
	options ShapesOptions
}

// OpenShapes returns a source of figures. Each sample carries the factors that were drawn for it:
//
//	shape     the label, an index into Kinds
//	scale     diameter of the circumscribed circle, as a fraction of the side
//	rotation  degrees counter-clockwise from the position in which the kind is defined
//	x, y      the figure's centre relative to the image's, right and down, as fractions of the side
//	hue       degrees: 0 red, 120 green, 240 blue; only with three channels
//
// Sample i depends on i and on the options except N. Its factors do not depend on Size either.
//
// With the default ranges a figure stays inside the circle inscribed in the image. The background
// is black, so a rotated image that is filled with black shows a rotated figure.
//
// The rotation is drawn from the same range for every kind. Kinds with a symmetry look the same at
// several rotations: a square at four, a disc at all. If a probe is to predict the rotation, choose
// kinds without symmetry, or a range in which each looks different at every rotation.
//
// It is an error if N is not from 1 to a billion, if a kind is unknown or listed twice, or if a
// size, a number of channels or a range is not allowed.
func OpenShapes(o ShapesOptions) (*Shapes, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("shapes: %w", err)
	}
	factors := []string{"hue", "rotation", "scale", "shape", "x", "y"}
	if o.Channels == 1 {
		factors = factors[1:]
	}
	return &Shapes{metadata{classes: o.Kinds, factors: factors, fingerprint: syntheticFingerprint("shapes", shapesVersion, o)}, o}, nil
}

func (o ShapesOptions) withDefaults() ShapesOptions {
	o.Size = cmp.Or(o.Size, 32)
	o.Channels = cmp.Or(o.Channels, 3)
	if o.Kinds == nil {
		o.Kinds = ShapeKinds()
	}
	o.Kinds = slices.Clone(o.Kinds)
	o.Scale = orRange(o.Scale, 0.35, 0.55)
	o.Rotation = orRange(o.Rotation, 0, 360)
	o.X = orRange(o.X, -0.15, 0.15)
	o.Y = orRange(o.Y, -0.15, 0.15)
	o.Hue = orRange(o.Hue, 0, 360)
	return o
}

func (o ShapesOptions) check() error {
	if o.N < 1 || o.N > maxSynthetic {
		return fmt.Errorf("n is %d: set it to the number of samples, 1 to %d", o.N, maxSynthetic)
	}
	if err := checkCanvas(o.Size, o.Channels); err != nil {
		return err
	}
	if len(o.Kinds) == 0 {
		return fmt.Errorf("kinds is empty: list some of %s, or remove it for all", strings.Join(ShapeKinds(), ", "))
	}
	for i, k := range o.Kinds {
		if _, ok := findOutline(k); !ok {
			return fmt.Errorf("kinds: unknown figure %q: use %s", k, strings.Join(ShapeKinds(), ", "))
		}
		if slices.Contains(o.Kinds[:i], k) {
			return fmt.Errorf("kinds: %q is listed twice", k)
		}
	}
	return checkRanges(factorRange{"scale", o.Scale, 0.01, 2}, factorRange{"rotation", o.Rotation, -3600, 3600},
		factorRange{"x", o.X, -1, 1}, factorRange{"y", o.Y, -1, 1}, factorRange{"hue", o.Hue, -360, 360})
}

func (s *Shapes) Len() int { return s.options.N }

// Figure returns the figure of sample i and its label.
func (s *Shapes) Figure(i int) (f Figure, label int) {
	r := seed.Rand(s.options.Seed, "shapes", i)
	return s.options.draw(r)
}

// draw draws a figure and its label.
func (o ShapesOptions) draw(r *rand.Rand) (f Figure, label int) {
	label = r.IntN(len(o.Kinds))
	return Figure{Kind: o.Kinds[label], Scale: uniform(r, o.Scale), Rotation: uniform(r, o.Rotation),
		X: uniform(r, o.X), Y: uniform(r, o.Y), Hue: uniform(r, o.Hue)}, label
}

func (s *Shapes) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "shapes", i, s.options.N); err != nil {
		return Sample{}, err
	}
	f, label := s.Figure(i)
	image := tensor.New(s.options.Channels, s.options.Size, s.options.Size)
	if err := f.Draw(image); err != nil {
		return Sample{}, fmt.Errorf("shapes: drawing sample %d: %w", i, err)
	}
	factors := map[string]float64{"shape": float64(label), "scale": f.Scale, "rotation": f.Rotation, "x": f.X, "y": f.Y}
	if s.options.Channels == 3 {
		factors["hue"] = f.Hue
	}
	input, err := frame.Tensor(image)
	if err != nil {
		return Sample{}, fmt.Errorf("shapes: framing sample %d: %w", i, err)
	}
	return Sample{
		Index:   i,
		Name:    fmt.Sprintf("shapes#%d", i),
		Input:   input,
		Label:   label,
		Factors: factors,
	}, nil
}

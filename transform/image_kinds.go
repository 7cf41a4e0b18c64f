package transform

import (
	"errors"
	"fmt"
	"math"
)

// The kinds of transforms of images. Short has the parameters of a bare value, as in `rotate: 30`.
// Above excludes Min, Constant allows no range. v.dist(name) is a number's distribution.

func identityKind() Kind {
	return Kind{
		Name:  "identity",
		Doc:   "Returns the input unchanged: the control of an experiment.",
		build: func(values) (Transform, error) { return Identity{}, nil },
	}
}

// numberKind returns a kind with one required parameter, which a bare value sets, as in `hue: 0.1`.
func numberKind(name, doc string, p Param, build func(Distribution) Transform) Kind {
	p.Required = true
	return Kind{
		Name: name, Doc: doc, Short: []string{p.Name}, Params: []Param{p},
		build: func(v values) (Transform, error) { return build(v.dist(p.Name)), nil },
	}
}

// samplingKind returns a kind that resamples the whole image and so has the parameters of
// samplingParams too.
func samplingKind(name, doc string, short []string, params []Param, build func(v values, s Sampling) Transform) Kind {
	return Kind{
		Name: name, Doc: doc, Short: short, Params: append(params, samplingParams()...),
		build: func(v values) (Transform, error) {
			s, err := v.sampling()
			return build(v, s), err
		},
	}
}

func rotateKind() Kind {
	return samplingKind("rotate", "Turns the image about its centre within its frame, exactly at multiples of 90 degrees of a square.",
		[]string{"angle"},
		[]Param{{Name: "angle", Doc: "counter-clockwise", Unit: "degrees", Required: true, Min: -360, Max: 360}},
		func(v values, s Sampling) Transform { return Rotate{v.dist("angle"), s} })
}

func translateKind() Kind {
	return samplingKind("translate", "Shifts the image; a bare value sets x and y, each of which is drawn on its own.",
		[]string{"x", "y"},
		[]Param{
			shift("x", "to the right, as a fraction of the width", Fixed(0)),
			shift("y", "down, as a fraction of the height", Fixed(0)),
		},
		func(v values, s Sampling) Transform { return Translate{v.dist("x"), v.dist("y"), s} })
}

func scaleKind() Kind {
	return samplingKind("scale", "Magnifies (above 1) or shrinks (below 1) the image about its centre within its frame.",
		[]string{"factor"},
		[]Param{{Name: "factor", Doc: "of lengths", Required: true, Min: 0, Above: true, Max: math.Inf(1)}},
		func(v values, s Sampling) Transform { return Scale{v.dist("factor"), s} })
}

func shearKind() Kind {
	return samplingKind("shear", "Slants the image about its centre; a bare value sets x.",
		[]string{"x"},
		[]Param{
			slant("x", "along the rows: the top moves to the right"),
			slant("y", "along the columns: the left side moves down"),
		},
		func(v values, s Sampling) Transform { return Shear{v.dist("x"), v.dist("y"), s} })
}

func affineKind() Kind {
	return samplingKind("affine", "Shears, scales and rotates the image about its centre, then shifts it, with one interpolation for all.",
		nil,
		[]Param{
			{Name: "rotate", Doc: "counter-clockwise", Unit: "degrees", Default: Fixed(0), Min: -360, Max: 360},
			shift("translate", "to the right and down, as a fraction of the side; the two are drawn on their own", Fixed(0)),
			shift("translate-x", "to the right, as a fraction of the width; overrides translate", nil),
			shift("translate-y", "down, as a fraction of the height; overrides translate", nil),
			{Name: "scale", Doc: "factor of lengths", Default: Fixed(1), Min: 0, Above: true, Max: math.Inf(1)},
			slant("shear-x", "along the rows: the top moves to the right"),
			slant("shear-y", "along the columns: the left side moves down"),
		},
		func(v values, s Sampling) Transform {
			x, y := v.dist("translate"), v.dist("translate")
			if v.has("translate-x") {
				x = v.dist("translate-x")
			}
			if v.has("translate-y") {
				y = v.dist("translate-y")
			}
			return Affine{v.dist("rotate"), x, y, v.dist("scale"), v.dist("shear-x"), v.dist("shear-y"), s}
		})
}

func flipKind() Kind {
	return Kind{
		Name:  "flip",
		Doc:   "Mirrors the image: horizontal swaps left and right, vertical swaps top and bottom.",
		Short: []string{"direction"},
		Params: []Param{
			{Name: "direction", Doc: "which way the pixels move", Options: []string{"horizontal", "vertical"}, Default: Option("horizontal")},
			{Name: "probability", Doc: "of mirroring the image; without it every image is mirrored", Constant: true, Max: 1},
		},
		build: func(v values) (Transform, error) {
			f := Flip{Vertical: v.option("direction") == "vertical"}
			if v.has("probability") {
				return RandomFlip{f.Vertical, v.dist("probability").Low}, nil
			}
			return f, nil
		},
	}
}

func cropKind() Kind {
	return Kind{
		Name:  "crop",
		Doc:   "Cuts out a box of the image's own proportions and resizes it back to the whole; it needs area or side.",
		Short: []string{"area"},
		Params: []Param{
			{Name: "area", Doc: "of the box, as a fraction of the image's", Max: 1, Above: true},
			{Name: "side", Doc: "of the box, as a fraction of the image's; in place of area", Max: 1, Above: true},
			{Name: "position", Doc: "of the box", Options: []string{"centre", "random"}, Default: Option("centre")},
			interpolationParam(),
		},
		build: func(v values) (Transform, error) {
			if v.has("area") == v.has("side") {
				return nil, errors.New("set area or side, one of the two")
			}
			c := Crop{Size: v.dist("area"), RandomPosition: v.option("position") == "random", Nearest: v.nearest()}
			if v.has("side") {
				c.Size, c.Side = v.dist("side"), true
			}
			return c, nil
		},
	}
}

func randomCropKind() Kind {
	return Kind{
		Name:   "random-crop",
		Doc:    "Pads the image by zeros and cuts a box of its size out at a random position of whole pixels.",
		Short:  []string{"padding"},
		Params: []Param{{Name: "padding", Doc: "of each side, as a fraction of it, rounded to pixels: 0.125 of 32 is 4", Required: true, Constant: true, Max: 1, Above: true}},
		build:  func(v values) (Transform, error) { return RandomCrop{v.dist("padding").Low}, nil },
	}
}

func trivialAugmentKind() Kind {
	return Kind{
		Name:  "trivial-augment",
		Doc:   "Applies one of 14 changes of place or colour at one of 31 strengths, drawn uniformly (Müller and Hutter 2021).",
		build: func(values) (Transform, error) { return TrivialAugment{}, nil },
	}
}

func grayscaleKind() Kind {
	return Kind{
		Name:  "grayscale",
		Doc:   "Removes the colour: every channel becomes 0.2989 R + 0.587 G + 0.114 B.",
		build: func(values) (Transform, error) { return Grayscale{}, nil },
	}
}

func brightnessKind() Kind {
	return numberKind("brightness", "Multiplies the image by a factor and clips it to [0, 1].",
		Param{Name: "factor", Doc: "0 and below give black, 1 the image itself", Min: math.Inf(-1), Max: math.Inf(1)},
		func(d Distribution) Transform { return Brightness{d} })
}

func contrastKind() Kind {
	return numberKind("contrast", "Multiplies the distance from the image's mean grey by a factor and clips the result to [0, 1].",
		Param{Name: "factor", Doc: "0 gives flat grey, 1 the image itself", Max: math.Inf(1)},
		func(d Distribution) Transform { return Contrast{d} })
}

func gaussianBlurKind() Kind {
	return Kind{
		Name:  "gaussian-blur",
		Doc:   "Averages every pixel with its neighbours under a Gaussian; the image is reflected at its border.",
		Short: []string{"sigma"},
		Params: []Param{
			{Name: "sigma", Doc: "standard deviation of the Gaussian", Unit: "pixels", Required: true, Above: true, Max: maxSigma},
			{Name: "kernel", Doc: "side of the kernel, an odd number; by default 2 ceil(3 sigma) + 1", Unit: "pixels", Constant: true, Min: 1, Max: maxKernel},
		},
		build: func(v values) (Transform, error) {
			k := v.dist("kernel").Low // 0, which selects the default, if not set
			if v.has("kernel") && math.Mod(k, 2) != 1 {
				return nil, errors.New("kernel must be an odd whole number, not " + number(k))
			}
			return GaussianBlur{v.dist("sigma"), int(k)}, nil
		},
	}
}

func gaussianNoiseKind() Kind {
	return numberKind("gaussian-noise", "Adds independent normal noise to every value and clips the result to [0, 1].",
		Param{Name: "sigma", Doc: "standard deviation, in the image's range of 0 to 1", Above: true, Max: math.Inf(1)},
		func(d Distribution) Transform { return GaussianNoise{d} })
}

func replaceKind() Kind {
	return Kind{
		Name:  "replace",
		Doc:   "Replaces the input by noise that does not depend on it: a random baseline.",
		Short: []string{"noise"},
		Params: []Param{
			{Name: "noise", Doc: "uniform on [0, 1), or normal with mean 0 and deviation 1, unclipped", Options: []string{"uniform", "normal"}, Default: Option("uniform")},
		},
		build: func(v values) (Transform, error) { return Replace{Normal: v.option("noise") == "normal"}, nil },
	}
}

func hueKind() Kind {
	return numberKind("hue", "Rotates the colours by a fraction of the colour circle.",
		Param{Name: "shift", Doc: "fraction of the circle; 1/3 turns red into green", Min: -0.5, Max: 0.5},
		func(d Distribution) Transform { return Hue{d} })
}

func saturationKind() Kind {
	return numberKind("saturation", "Mixes the image with its own grey by a factor and clips it to [0, 1].",
		Param{Name: "factor", Doc: "0 gives grey, 1 the image itself, below 0 the complementary colours", Min: math.Inf(-1), Max: math.Inf(1)},
		func(d Distribution) Transform { return Saturation{d} })
}

func jpegKind() Kind {
	return numberKind("jpeg", "Encodes the image as JPEG and decodes it.",
		Param{Name: "quality", Doc: "rounded; 0 is the same as 1", Min: 0, Max: 100},
		func(d Distribution) Transform { return JPEG{d} })
}

func shift(name, doc string, byDefault Arg) Param {
	return Param{Name: name, Doc: doc, Default: byDefault, Min: -1, Max: 1}
}

func slant(name, doc string) Param {
	return Param{Name: name, Doc: doc, Unit: "degrees", Default: Fixed(0), Min: -89, Max: 89}
}

func interpolationParam() Param {
	return Param{Name: "interpolation", Doc: "between pixels", Options: []string{"bilinear", "nearest"}, Default: Option("bilinear")}
}

// samplingParams returns the parameters of all transforms that resample the whole image.
func samplingParams() []Param {
	return []Param{
		interpolationParam(),
		{Name: "outside", Doc: "what lies outside the image: a constant, its mirror image, or the image repeated", Options: []string{"fill", "reflect", "wrap"}, Default: Option("fill")},
		{Name: "fill", Doc: "the constant outside, blended in at the border as by torchvision's fill; by default 0 as by torchvision's fill=None", Constant: true, Min: math.Inf(-1), Max: math.Inf(1)},
	}
}

func (v values) nearest() bool { return v.option("interpolation") == "nearest" }

func (v values) sampling() (Sampling, error) {
	s := Sampling{Nearest: v.nearest()}
	switch outside := v.option("outside"); {
	case outside != "fill" && v.has("fill"):
		return s, fmt.Errorf("fill has no meaning with outside: %s; leave one of them out", outside)
	case outside == "reflect":
		s.Outside = Reflection
	case outside == "wrap":
		s.Outside = Wrapped
	case v.has("fill"):
		s.Outside, s.Fill = Filled, v.dist("fill").Low
	}
	return s, nil
}

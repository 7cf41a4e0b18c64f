package transform

import (
	"errors"
	"math"
)

func identityKind() Kind {
	return Kind{
		Name:  "identity",
		Doc:   "Leaves the input as it is: the control of an experiment.",
		build: func(values) (Transform, error) { return Identity{}, nil },
	}
}

func rotateKind() Kind {
	return Kind{
		Name:  "rotate",
		Doc:   "Turns the image about its centre within its frame, exactly at multiples of 90 degrees of a square.",
		Short: []string{"angle"},
		Params: append([]Param{
			{Name: "angle", Doc: "counter-clockwise", Unit: "degrees", Required: true, Min: -360, Max: 360},
		}, samplingParams()...),
		build: func(v values) (Transform, error) {
			s, err := v.sampling()
			return Rotate{v.dist("angle"), s}, err
		},
	}
}

func translateKind() Kind {
	return Kind{
		Name:  "translate",
		Doc:   "Shifts the image; a bare value sets x and y, which are drawn each by itself.",
		Short: []string{"x", "y"},
		Params: append([]Param{
			shift("x", "to the right, as a fraction of the width", Fixed(0)),
			shift("y", "down, as a fraction of the height", Fixed(0)),
		}, samplingParams()...),
		build: func(v values) (Transform, error) {
			s, err := v.sampling()
			return Translate{v.dist("x"), v.dist("y"), s}, err
		},
	}
}

func scaleKind() Kind {
	return Kind{
		Name:  "scale",
		Doc:   "Magnifies (above 1) or shrinks (below 1) the image about its centre within its frame.",
		Short: []string{"factor"},
		Params: append([]Param{
			{Name: "factor", Doc: "of lengths", Required: true, Min: 0, Above: true, Max: math.Inf(1)},
		}, samplingParams()...),
		build: func(v values) (Transform, error) {
			s, err := v.sampling()
			return Scale{v.dist("factor"), s}, err
		},
	}
}

func shearKind() Kind {
	return Kind{
		Name:  "shear",
		Doc:   "Slants the image about its centre; a bare value sets x.",
		Short: []string{"x"},
		Params: append([]Param{
			slant("x", "along the rows: the top moves to the right"),
			slant("y", "along the columns: the left side moves down"),
		}, samplingParams()...),
		build: func(v values) (Transform, error) {
			s, err := v.sampling()
			return Shear{v.dist("x"), v.dist("y"), s}, err
		},
	}
}

func affineKind() Kind {
	return Kind{
		Name: "affine",
		Doc:  "Shears, scales and rotates the image about its centre, then shifts it, with one interpolation for all.",
		Params: append([]Param{
			{Name: "rotate", Doc: "counter-clockwise", Unit: "degrees", Default: Fixed(0), Min: -360, Max: 360},
			shift("translate", "to the right and down, as a fraction of the side; drawn for each by itself", Fixed(0)),
			shift("translate-x", "to the right, as a fraction of the width; overrides translate", nil),
			shift("translate-y", "down, as a fraction of the height; overrides translate", nil),
			{Name: "scale", Doc: "factor of lengths", Default: Fixed(1), Min: 0, Above: true, Max: math.Inf(1)},
			slant("shear-x", "along the rows: the top moves to the right"),
			slant("shear-y", "along the columns: the left side moves down"),
		}, samplingParams()...),
		build: func(v values) (Transform, error) {
			x, y := v.dist("translate"), v.dist("translate")
			if v.has("translate-x") {
				x = v.dist("translate-x")
			}
			if v.has("translate-y") {
				y = v.dist("translate-y")
			}
			s, err := v.sampling()
			return Affine{v.dist("rotate"), x, y, v.dist("scale"), v.dist("shear-x"), v.dist("shear-y"), s}, err
		},
	}
}

func flipKind() Kind {
	return Kind{
		Name:  "flip",
		Doc:   "Mirrors the picture: horizontal swaps left and right, vertical swaps top and bottom.",
		Short: []string{"direction"},
		Params: []Param{
			{Name: "direction", Doc: "which way the pixels move", Options: []string{"horizontal", "vertical"}, Default: Option("horizontal")},
		},
		build: func(v values) (Transform, error) { return Flip{Vertical: v.option("direction") == "vertical"}, nil },
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
			c := Crop{Size: v.dist("area"), Moving: v.option("position") == "random", Nearest: v.nearest()}
			if v.has("side") {
				c.Size, c.Side = v.dist("side"), true
			}
			return c, nil
		},
	}
}

func grayscaleKind() Kind {
	return Kind{
		Name:  "grayscale",
		Doc:   "Takes the colour away: every channel becomes 0.2989 R + 0.587 G + 0.114 B.",
		build: func(values) (Transform, error) { return Grayscale{}, nil },
	}
}

func brightnessKind() Kind {
	return Kind{
		Name:   "brightness",
		Doc:    "Multiplies the image by a factor and clips it to [0, 1].",
		Short:  []string{"factor"},
		Params: []Param{{Name: "factor", Doc: "0 and below give black, 1 the image itself", Required: true, Min: math.Inf(-1), Max: math.Inf(1)}},
		build:  func(v values) (Transform, error) { return Brightness{v.dist("factor")}, nil },
	}
}

func contrastKind() Kind {
	return Kind{
		Name:   "contrast",
		Doc:    "Multiplies the distance from the image's mean grey by a factor and clips the result to [0, 1].",
		Short:  []string{"factor"},
		Params: []Param{{Name: "factor", Doc: "0 gives flat grey, 1 the image itself", Required: true, Max: math.Inf(1)}},
		build:  func(v values) (Transform, error) { return Contrast{v.dist("factor")}, nil },
	}
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
			k := v.dist("kernel").Low
			if v.has("kernel") && math.Mod(k, 2) != 1 {
				return nil, errors.New("kernel must be an odd whole number, not " + number(k))
			}
			return GaussianBlur{v.dist("sigma"), int(k)}, nil
		},
	}
}

func gaussianNoiseKind() Kind {
	return Kind{
		Name:   "gaussian-noise",
		Doc:    "Adds independent normal noise to every value and clips the result to [0, 1].",
		Short:  []string{"sigma"},
		Params: []Param{{Name: "sigma", Doc: "standard deviation, in the image's range of 0 to 1", Required: true, Above: true, Max: math.Inf(1)}},
		build:  func(v values) (Transform, error) { return GaussianNoise{v.dist("sigma")}, nil },
	}
}

func replaceKind() Kind {
	return Kind{
		Name:  "replace",
		Doc:   "Puts noise in the place of the input, which it does not depend on: a random baseline.",
		Short: []string{"noise"},
		Params: []Param{
			{Name: "noise", Doc: "uniform on [0, 1), or normal with mean 0 and deviation 1, unclipped", Options: []string{"uniform", "normal"}, Default: Option("uniform")},
		},
		build: func(v values) (Transform, error) { return Replace{Normal: v.option("noise") == "normal"}, nil },
	}
}

func hueKind() Kind {
	return Kind{
		Name:   "hue",
		Doc:    "Turns the colours by a part of the colour circle.",
		Short:  []string{"shift"},
		Params: []Param{{Name: "shift", Doc: "parts of the circle; 1/3 makes red green", Required: true, Min: -0.5, Max: 0.5}},
		build:  func(v values) (Transform, error) { return Hue{v.dist("shift")}, nil },
	}
}

func saturationKind() Kind {
	return Kind{
		Name:   "saturation",
		Doc:    "Mixes the image with its own grey by a factor and clips it to [0, 1].",
		Short:  []string{"factor"},
		Params: []Param{{Name: "factor", Doc: "0 gives grey, 1 the image itself, below 0 the complementary colours", Required: true, Min: math.Inf(-1), Max: math.Inf(1)}},
		build:  func(v values) (Transform, error) { return Saturation{v.dist("factor")}, nil },
	}
}

func jpegKind() Kind {
	return Kind{
		Name:   "jpeg",
		Doc:    "Writes the image as JPEG and reads it again.",
		Short:  []string{"quality"},
		Params: []Param{{Name: "quality", Doc: "rounded; 0 is as 1", Required: true, Min: 0, Max: 100}},
		build:  func(v values) (Transform, error) { return JPEG{v.dist("quality")}, nil },
	}
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

// samplingParams are what all transforms that resample the whole image take.
func samplingParams() []Param {
	return []Param{
		interpolationParam(),
		{Name: "outside", Doc: "what lies outside the picture: a constant, or its mirror image", Options: []string{"fill", "reflect"}, Default: Option("fill")},
		{Name: "fill", Doc: "the constant outside, blended in at the border as by torchvision's fill; by default 0 as by torchvision's fill=None", Constant: true, Min: math.Inf(-1), Max: math.Inf(1)},
	}
}

func (v values) nearest() bool { return v.option("interpolation") == "nearest" }

func (v values) sampling() (Sampling, error) {
	s := Sampling{Nearest: v.nearest()}
	switch reflect := v.option("outside") == "reflect"; {
	case reflect && v.has("fill"):
		return s, errors.New("fill has no meaning with outside: reflect; leave one of them out")
	case reflect:
		s.Outside = Reflection
	case v.has("fill"):
		s.Outside, s.Fill = Filled, v.dist("fill").Low
	}
	return s, nil
}

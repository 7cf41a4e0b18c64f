package transform

import (
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/tensor"
)

// Corrupt applies one of the fifteen common corruptions of Hendrycks and Dietterich 2019
// (ImageNet-C) at a severity from 1 to 5. Between whole severities the settings are interpolated.
// Below 96 pixels of the shorter side they are CIFAR-10-C's, for 32, else ImageNet-C's, for 224;
// lengths scale with the side. What would vanish, or grow unevenly with the severity, for rounding
// to whole pixels differs: below 32 pixels blurs have the lengths for 32.
//
// Each severity changes an image more than the one before, by the mean absolute difference, but
// where the published settings do not: glass-blur and elastic-transform trade one distortion for
// another, severities 3 and 4 of motion-blur are equal below 96 pixels, and from 96 pixels on
// severity 3 of snow and 4 of fog change as much as the ones before.
//
// Draw seeds all random choices, so an Op is deterministic. Values are not rounded to 8 bits,
// unlike the published files. Frost is generated, with the original's weights: the licence of its
// photographs forbids copies.
type Corrupt struct {
	Kind     string       // one of Corruptions
	Severity Distribution // 1 to 5
}

// Corruptions are the kinds of Corrupt, in the order of the paper: noise, blur, weather, digital.
func Corruptions() []string {
	names := make([]string, len(corruptions))
	for i, c := range corruptions {
		names[i] = c.name
	}
	return names
}

type corruption struct {
	name         string
	small, large [5]settings                              // of CIFAR-10-C and of ImageNet-C
	apply        func(p canvas, s settings, r *rand.Rand) // changes p; values may leave [0, 1]
}

// settings are the parameters of one severity, in the order of the original code.
type settings []float64

// corruptions are all fifteen. Lengths are in pixels of images with sides of 32 and 224. A comment
// names the parameters of the settings.
var corruptions = []corruption{
	// standard deviation
	{"gaussian-noise", levels(.04, .06, .08, .09, .10), levels(.08, .12, .18, .26, .38), gaussianNoise},
	// photons of a white pixel
	{"shot-noise", levels(500, 250, 100, 75, 50), levels(60, 25, 12, 5, 3), shotNoise},
	// fraction of the values
	{"impulse-noise", levels(.01, .02, .03, .05, .07), levels(.03, .06, .09, .17, .27), impulseNoise},
	{"defocus-blur", // radius of the disk, standard deviation of its edge
		[5]settings{{.3, .4}, {.4, .5}, {.5, .6}, {1, .2}, {1.5, .1}},
		[5]settings{{3, .1}, {4, .5}, {6, .5}, {8, .5}, {10, .5}}, defocusBlur},
	{"glass-blur", // standard deviation of the blur, largest distance of a swap, number of passes
		[5]settings{{.05, 1, 1}, {.25, 1, 1}, {.4, 1, 1}, {.25, 1, 2}, {.4, 1, 2}},
		[5]settings{{.7, 1, 2}, {.9, 2, 1}, {1, 2, 3}, {1.1, 3, 2}, {1.5, 4, 2}}, glassBlur},
	{"motion-blur", // radius and standard deviation
		[5]settings{{6, 1}, {6, 1.5}, {6, 2}, {8, 2}, {9, 2.5}},
		[5]settings{{10, 3}, {15, 5}, {15, 8}, {15, 12}, {20, 15}}, motionBlur},
	{"zoom-blur", // the largest factor, excluded, and the step
		[5]settings{{1.06, .01}, {1.11, .01}, {1.16, .01}, {1.21, .01}, {1.26, .01}},
		[5]settings{{1.11, .01}, {1.16, .01}, {1.21, .02}, {1.26, .02}, {1.31, .03}}, zoomBlur},
	// mean and standard deviation of the noise, zoom, threshold, radius and standard deviation of
	// the motion blur, weight of the image
	{"snow",
		[5]settings{{.1, .2, 1, .6, 8, 3, .95}, {.1, .2, 1, .5, 10, 4, .9}, {.15, .3, 1.75, .55, 10, 4, .9}, {.25, .3, 2.25, .6, 12, 6, .85}, {.3, .3, 1.25, .65, 14, 12, .8}},
		[5]settings{{.1, .3, 3, .5, 10, 4, .8}, {.2, .3, 2, .5, 12, 4, .7}, {.55, .3, 4, .9, 12, 8, .7}, {.55, .3, 4.5, .85, 12, 8, .65}, {.55, .3, 2.5, .85, 12, 12, .55}}, snow},
	{"frost", // weight of the image, of the frost
		[5]settings{{1, .2}, {1, .3}, {.9, .4}, {.85, .4}, {.75, .45}},
		[5]settings{{1, .4}, {.8, .6}, {.7, .7}, {.65, .7}, {.6, .75}}, frost},
	{"fog", // weight of the cloud, decay of its roughness
		[5]settings{{.2, 3}, {.5, 3}, {.75, 2.5}, {1, 2}, {1.5, 1.75}},
		[5]settings{{1.5, 2}, {2, 2}, {2.5, 1.7}, {2.5, 1.5}, {3, 1.4}}, fog},
	// amount added to V of HSV
	{"brightness", levels(.05, .1, .15, .2, .3), levels(.1, .2, .3, .4, .5), brighten},
	// factor of the deviations from the mean
	{"contrast", levels(.75, .5, .4, .3, .15), levels(.4, .3, .2, .1, .05), reduceContrast},
	// amplitude of the displacements, standard deviation of their smoothing, largest shift of the
	// three points whose shifts determine an affine map
	{"elastic-transform",
		[5]settings{{0, 0, 2.56}, {1.6, 6.4, 2.24}, {2.56, 1.92, 1.92}, {3.2, 1.28, 1.6}, {3.2, .96, .96}},
		[5]settings{{488, 170.8, 24.4}, {488, 19.52, 48.8}, {12.2, 2.44, 4.88}, {17.08, 2.44, 4.88}, {29.28, 2.44, 4.88}}, elastic},
	// fraction of the sides
	{"pixelate", levels(.95, .9, .85, .75, .65), levels(.6, .5, .4, .3, .25), pixelate},
	// quality
	{"jpeg-compression", levels(80, 65, 58, 50, 40), levels(25, 18, 15, 10, 7), compressJPEG},
}

func levels(v ...float64) (s [5]settings) {
	for i := range s {
		s[i] = settings{v[i]}
	}
	return s
}

// Lengths of the shorter side, in pixels.
const (
	smallSide = 32 // of the images of CIFAR-10-C
	largeSide = 96 // from which images have the settings of ImageNet-C
)

type canvas struct {
	c, h, w int
	data    []float32
	scale   float64 // factor of lengths: the side of the image over that of the settings
}

func (p canvas) side() int { return min(p.h, p.w) }

// blurScale returns the factor of the lengths of blurs. Shorter ones than those for smallSide would
// vanish within a pixel.
func (p canvas) blurScale() float64 {
	if p.side() < smallSide {
		return 1
	}
	return p.scale
}

func (p canvas) plane(k int) []float32 { return p.data[k*p.h*p.w:][:p.h*p.w] }

func (p canvas) clip() {
	for i, v := range p.data {
		p.data[i] = clip(v)
	}
}

func (t Corrupt) Draw(r *rand.Rand) Op {
	i := slices.IndexFunc(corruptions, func(c corruption) bool { return c.name == t.Kind })
	return corruptOp{index: i, severity: t.Severity.Draw(r), seed: newNoiseSeed(r)}
}

// Random is true: most corruptions use random numbers.
func (t Corrupt) Random() bool { return true }

// Version is 2 for jpeg-compression, whose version 1 did not interpolate chroma, and for the kinds
// whose version 1 changed small images by nothing, or not by more with each severity.
func (t Corrupt) Version() int {
	switch t.Kind {
	case "jpeg-compression", "defocus-blur", "glass-blur", "motion-blur", "zoom-blur", "snow", "frost", "pixelate":
		return 2
	}
	return 1
}

type corruptOp struct {
	index    int // in corruptions
	severity float64
	seed     noiseSeed
}

func (o corruptOp) Parameter() float64 { return o.severity }

// Renew returns the corruption at the same severity with other noise.
func (o corruptOp) Renew(r *rand.Rand) Op { return corruptOp{o.index, o.severity, newNoiseSeed(r)} }

func (o corruptOp) Apply(dst, src tensor.Tensor) {
	c, h, w := dims(dst, src)
	copy(dst.Data, src.Data)
	if len(src.Data) == 0 {
		return
	}
	kind := &corruptions[o.index]
	p := canvas{c: c, h: h, w: w, data: dst.Data}
	set := kind.small
	p.scale = float64(p.side()) / smallSide // the side for which settings are given, or 224 below
	if p.side() >= largeSide {
		set, p.scale = kind.large, float64(p.side())/224
	}
	kind.apply(p, settingsAt(set, o.severity), o.seed.rand())
	p.clip()
}

// settingsAt returns the settings at a severity from 1 to 5, by linear interpolation.
func settingsAt(levels [5]settings, severity float64) settings {
	lower := min(int(severity), 4) - 1
	fraction := severity - float64(lower+1)
	s := make(settings, len(levels[lower]))
	for i, v := range levels[lower] {
		s[i] = (1-fraction)*v + fraction*levels[lower+1][i]
	}
	return s
}

func corruptKind() Kind {
	return Kind{
		Name: "corrupt",
		Doc:  "Applies one of the fifteen common corruptions of ImageNet-C.",
		Params: []Param{
			{Name: "kind", Doc: "of the corruption", Options: Corruptions(), Required: true},
			{Name: "severity", Doc: "1 (slight) to 5", Required: true, Min: 1, Max: 5},
		},
		build: func(v values) (Transform, error) {
			return Corrupt{Kind: v.option("kind"), Severity: v.dist("severity")}, nil
		},
	}
}

package open

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/spec"
)

// Shapes are the keys of synthetic figures.
type Shapes struct {
	N        int       `key:"n" default:"1000" min:"1" doc:"samples"`
	Size     int       `key:"size" default:"32" min:"4" max:"4096" doc:"side in pixels"`
	Channels int       `key:"channels" default:"3" min:"1" max:"3" doc:"3: colour, 1: white on black"`
	Seed     uint64    `key:"seed" default:"1" doc:"seed of the random factors"`
	Kinds    []string  `key:"kinds" doc:"kinds of figures; default: all"`
	Scale    []float64 `key:"scale" doc:"[low, high]: diameter of the circumscribed circle, as a fraction of the side"`
	Rotation []float64 `key:"rotation" doc:"[low, high]: degrees"`
	X        []float64 `key:"x" doc:"[low, high]: offset to the right, as a fraction of the side"`
	Y        []float64 `key:"y" doc:"[low, high]: offset downwards, as a fraction of the side"`
	Hue      []float64 `key:"hue" doc:"[low, high]: degrees"`
	Figures  []int     `key:"figures" doc:"[fewest, most] figures of an image; with this key or texture, samples have masks: the class of each pixel"`
	Texture  bool      `key:"texture" doc:"a textured background, not black"`
}

// Open implements Source.
func (k *Shapes) Open(context.Context, *Files, spec.Data) (dataset.Source, error) {
	o := dataset.ShapesOptions{N: k.N, Size: k.Size, Channels: k.Channels, Seed: k.Seed, Kinds: k.Kinds,
		Scale: k.Scale, Rotation: k.Rotation, X: k.X, Y: k.Y, Hue: k.Hue}
	if k.Figures != nil || k.Texture {
		return asSource(dataset.OpenScenes(dataset.ScenesOptions{ShapesOptions: o, Figures: k.Figures, Textured: k.Texture}))
	}
	return asSource(dataset.OpenShapes(o))
}

// Tones are the keys of synthetic audio.
type Tones struct {
	N        int       `key:"n" default:"1000" min:"1" doc:"samples"`
	Rate     int       `key:"rate" default:"16000" min:"1000" doc:"samples per second"`
	Length   float64   `key:"length" default:"1" min:"0" doc:"seconds"`
	Seed     uint64    `key:"seed" default:"1" doc:"seed of the random factors"`
	Pitch    []float64 `key:"pitch" doc:"[low, high]: Hz, uniform on a logarithmic scale"`
	Loudness []float64 `key:"loudness" doc:"[low, high]: root mean square during a tone, in dB relative to an amplitude of 1 (dBFS)"`
	Beats    []float64 `key:"beats" doc:"[low, high]: tones per second"`
	Bright   []float64 `key:"bright" doc:"[low, high]: amplitude of each harmonic relative to the one below it"`
}

// Open implements Source.
func (k *Tones) Open(context.Context, *Files, spec.Data) (dataset.Source, error) {
	return asSource(dataset.OpenTones(dataset.TonesOptions{N: k.N, Rate: k.Rate, Length: k.Length, Seed: k.Seed,
		Pitch: k.Pitch, Loudness: k.Loudness, Beats: k.Beats, Bright: k.Bright}))
}

// Gratings are the keys of sinusoidal gratings.
type Gratings struct {
	Size         int       `key:"size" default:"32" min:"4" max:"4096" doc:"side in pixels"`
	Channels     int       `key:"channels" default:"3" min:"1" max:"3" doc:"3 or 1"`
	Frequencies  []float64 `key:"frequencies" doc:"radians per unit of length, where the side is pi; default: 2, 4, 6, 8"`
	Orientations []float64 `key:"orientations" doc:"degrees; default: 21 values from 0 to 180"`
	Phases       []float64 `key:"phases" doc:"units of length, where the side is pi; default: 21 values from 0 to pi"`
}

// Open implements Source.
func (k *Gratings) Open(context.Context, *Files, spec.Data) (dataset.Source, error) {
	return asSource(dataset.OpenGratings(dataset.GratingsOptions{Size: k.Size, Channels: k.Channels,
		Frequencies: k.Frequencies, Orientations: k.Orientations, Phases: k.Phases}))
}

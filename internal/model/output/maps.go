package output

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
)

// A mapPort is an output of a model that is a map, with values for each position of an image: one
// sample has the shape c x h x w, h x w x c, or h x w.
type mapPort struct {
	*Port
	channels, height, width int
	last                    bool // whether the channels come last
	flat                    bool // whether there is no axis for channels; channels is then 1
}

// The values of the argument integers of maps.
const (
	ofFloats   = false
	ofIntegers = true
)

// maps returns those of the outputs searched that are maps: of integers, or else of floats.
func (q *query) maps(integers bool) (out []mapPort) {
	for i := range q.ports {
		p := &q.ports[i]
		if p.isInteger() != integers || !integers && !p.isFloat() {
			continue
		}
		s := p.Sample
		switch {
		case len(s) == 2:
			out = append(out, mapPort{p, 1, s[0], s[1], false, true})
		case len(s) == 3 && (p.Axes == "NHWC" || p.Probed.sums(2) && s[2] > 1):
			out = append(out, mapPort{p, s[2], s[0], s[1], true, false})
		case len(s) == 3:
			out = append(out, mapPort{p, s[0], s[1], s[2], false, false})
		}
	}
	return out
}

// value returns the map in a graph: batch x channels x height x width.
func (m mapPort) value(b *onnx.Builder) onnx.Value {
	x := float(b, m.Name)
	switch {
	case m.flat:
		return b.Unsqueeze(x, 1)
	case m.last:
		return b.Transpose(x, 0, 3, 1, 2)
	}
	return x
}

// coversImage reports whether a map has the aspect ratio of the model's image (q.about), to within
// 5 %, at least one position for each 4 x 4 pixels, which the feature maps of a backbone lack, and
// more than one position.
func (q *query) coversImage(m mapPort) bool {
	ratio := float64(m.height*q.about.Width) / float64(m.width*q.about.Height)
	return math.Abs(math.Log(ratio)) < 0.05 && 4*m.height >= q.about.Height && m.height*m.width > 1
}

// oneMap returns the map that satisfies a condition, or nil. If there are several, it leaves out
// those whose names have the word "aux" (auxiliary results of training). Of the others it returns
// the only one; else the first whose name has a word for a result, such as "out"; else the first if
// all have one shape, as torchvision's result and auxiliary result do; else nil.
func oneMap(maps []mapPort, fits func(mapPort) bool) *mapPort {
	var found []mapPort
	for _, m := range maps {
		if fits(m) {
			found = append(found, m)
		}
	}
	if len(found) > 1 {
		var main []mapPort
		for _, m := range found {
			if !m.named("aux") {
				main = append(main, m)
			}
		}
		found = main
	}
	for i, m := range found {
		if len(found) == 1 || m.named("out", "logit", "seg", "mask", "sem", "pred") {
			return &found[i]
		}
	}
	differs := func(m mapPort) bool { return !slices.Equal(m.Sample, found[0].Sample) }
	if len(found) > 0 && !slices.ContainsFunc(found, differs) {
		return &found[0]
	}
	return nil
}

// maxGuessedClasses is the largest number of channels that are assumed to be classes.
const maxGuessedClasses = 256

// findLogits finds a map with a score for each class, and returns its decoder, which adds nodes
// that compute the class at each position to the model's graph. If it has one channel, positions
// with a score above 0 have class 1, the others class 0. Here and below, guess says that the study
// does not name the layout of the output, so it must be recognised with little doubt (see
// layout.find).
func findLogits(q *query, guess bool) *Decoder {
	// A map of 3 channels may be an image.
	m := oneMap(q.maps(ofFloats), func(m mapPort) bool {
		return !m.flat && (!guess || m.scoresClasses() && !m.isProbability() && m.channels >= 2 && m.channels <= maxGuessedClasses && m.channels != 3 && q.coversImage(m))
	})
	if m == nil {
		return nil
	}
	return newClassMap(*m, max(m.channels, 2), 2, func(b *onnx.Builder) onnx.Value {
		z := m.value(b)
		if m.channels == 1 {
			z = b.Concat(1, b.Mul(z, b.Scalar(0)), z)
		}
		// The probability of the most likely class, by operators that are the same in every opset.
		top := b.ReduceMax(z, true, 1)
		p := b.Op("Reciprocal", nil, b.ReduceSum(b.Exp(b.Sub(z, top)), true, 1))
		return b.Concat(1, classOf(b, z), p)
	})
}

// isProbability reports whether the values of a map are probabilities, by the operator before it or
// by their sums over the channels.
func (m mapPort) isProbability() bool {
	axis := 0
	if m.last {
		axis = 2
	}
	return m.After == "Softmax" || m.After == sigmoid || m.channels > 1 && m.Probed.sums(axis)
}

// scoresClasses reports whether nothing in the name of a map says that its channels are no classes.
func (m mapPort) scoresClasses() bool {
	return !m.named("flow", "motion", "offset", "latent", "feature", "embed", "hidden", "image", "recon", "heat", "normal", "keypoint")
}

// findProbabilities finds a map with a probability for each class, by a softmax over several
// channels or a sigmoid. With one channel it is that of class 1. A sigmoid with the channels and
// the size of the image may be an image.
func findProbabilities(q *query, guess bool) *Decoder {
	m := oneMap(q.maps(ofFloats), func(m mapPort) bool {
		switch {
		case !guess:
			return !m.flat || m.After == sigmoid
		case m.channels == 1:
			return m.After == sigmoid && !q.isDepth(m) && q.coversImage(m)
		}
		return m.isProbability() && m.scoresClasses() && !(m.After == sigmoid && q.isImage(m)) && m.channels <= maxGuessedClasses && q.coversImage(m)
	})
	if m == nil {
		return nil
	}
	return newClassMap(*m, max(m.channels, 2), 2, func(b *onnx.Builder) onnx.Value {
		p := m.value(b)
		if m.channels == 1 {
			p = b.Concat(1, b.Sub(b.Scalar(1), p), p)
		}
		return b.Concat(1, classOf(b, p), b.ReduceMax(p, true, 1))
	})
}

// findLabels finds a map of class numbers.
func findLabels(q *query, guess bool) *Decoder {
	m := oneMap(q.maps(ofIntegers), func(m mapPort) bool {
		return m.channels == 1 && (!guess || q.coversImage(m) && m.height > 1 && m.width > 1)
	})
	if m == nil {
		return nil
	}
	return newClassMap(*m, 0, 1, m.value)
}

// sigmoid is the value of Port.After for a sigmoid.
const sigmoid = "Sigmoid"

// classOf returns the class with the highest score at each position, batch x 1 x h x w.
func classOf(b *onnx.Builder, scores onnx.Value) onnx.Value {
	// If a score is not finite, the class is NaN.
	bad := b.Mul(b.ReduceSum(scores, true, 1), b.Scalar(0))
	return b.Add(b.Cast(b.Op("ArgMax", onnx.Attrs{"axis": 1, "keepdims": 1}, scores), onnx.Float), bad)
}

// newClassMap returns the decoder of a map of classes. classes is their number; 0: unknown. planes
// is the number of channels of the map that build adds to the graph: 2 for class and probability, 1
// for the class.
func newClassMap(m mapPort, classes, planes int, build func(b *onnx.Builder) onnx.Value) *Decoder {
	f := decoded.Format{Kind: decoded.ClassMap, Outputs: []string{m.Name}, Height: m.height, Width: m.width, Channels: planes, Classes: classes}
	return &Decoder{Format: f, build: func(b *onnx.Builder) onnx.Value { return build(b.Scope("decoded")) }}
}

// findHeatMaps finds a map with a channel for each keypoint. The keypoint is where the channel is
// largest.
func findHeatMaps(q *query, guess bool) *Decoder {
	m := oneMap(q.maps(ofFloats), func(m mapPort) bool {
		return !m.flat && m.height*m.width > 1 && (!guess || m.named("heatmap", "heat_map") && q.coversImage(m))
	})
	if m == nil {
		return nil
	}
	f := decoded.Format{Kind: decoded.PointList, Outputs: []string{m.Name}, Height: q.about.Height, Width: q.about.Width, Keypoints: m.channels}
	return &Decoder{Format: f, build: func(b *onnx.Builder) onnx.Value {
		b = b.Scope("decoded")
		flat := b.Reshape(m.value(b), -1, m.channels, m.height*m.width)
		at := b.Cast(b.Op("ArgMax", onnx.Attrs{"axis": 2, "keepdims": 1}, flat), onnx.Float)
		row := b.Op("Floor", nil, b.Div(at, b.Scalar(float32(m.width))))
		column := b.Sub(at, b.Mul(row, b.Scalar(float32(m.width))))
		centre := func(x onnx.Value, n int) onnx.Value { // of position x along a side of n positions, as a fraction of the side
			return b.Mul(b.Add(x, b.Scalar(0.5)), b.Scalar(1/float32(n)))
		}
		// If a value of the channel is not finite, the score of the keypoint is NaN.
		top := b.Add(b.ReduceMax(flat, true, 2), b.Mul(b.ReduceSum(flat, true, 2), b.Scalar(0)))
		return b.Concat(2, centre(column, m.width), centre(row, m.height), top)
	}}
}

// findNormals returns the function that finds a map of the normals of surfaces. v says in which
// directions their first two components are positive, such as right and down.
func findNormals(v decoded.Vectors) func(q *query, guess bool) *Decoder {
	return func(q *query, guess bool) *Decoder {
		d := findValues(q, func(m mapPort) bool {
			return m.channels == 3 && (!guess || m.named("normal") && q.coversImage(m))
		})
		if d != nil {
			d.Format.Vectors = v
		}
		return d
	}
}

// findImage finds an image. If guess is set, it must have the shape of the model's input.
func findImage(q *query, guess bool) *Decoder {
	return findValues(q, func(m mapPort) bool { return !m.flat && (!guess || q.isImage(m)) })
}

// isImage reports whether a map has the shape of the model's image.
func (q *query) isImage(m mapPort) bool {
	return m.channels == q.about.Channels && m.height == q.about.Height && m.width == q.about.Width
}

// findDepth finds a map of the depth at each position.
func findDepth(q *query, guess bool) *Decoder {
	return findValues(q, func(m mapPort) bool { return m.channels == 1 && (!guess || q.isDepth(m) && q.coversImage(m)) })
}

// isDepth reports whether the name of a map or the model's config.json says that it holds depth.
func (q *query) isDepth(m mapPort) bool { return q.about.Depth || m.named("depth", "disp") }

// findMap finds any map of floats. If guess is set, it has one value for each position, of which
// nothing is known.
func findMap(q *query, guess bool) *Decoder {
	return findValues(q, func(m mapPort) bool {
		return !guess || m.channels == 1 && m.After == "" && m.Axes != "NTC" && q.coversImage(m)
	})
}

// findValues returns the decoder of the map that satisfies a condition, with its values unchanged.
func findValues(q *query, fits func(mapPort) bool) *Decoder {
	m := oneMap(q.maps(ofFloats), fits)
	if m == nil {
		return nil
	}
	f := decoded.Format{Kind: decoded.ValueMap, Outputs: []string{m.Name}, Height: m.height, Width: m.width, Channels: m.channels}
	return &Decoder{Format: f, build: func(b *onnx.Builder) onnx.Value { return b.Identity(m.value(b.Scope("decoded"))) }}
}

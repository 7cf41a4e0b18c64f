// Package latent measures which linear operator on feature maps explains a transformation of the
// input, after Lenc and Vedaldi 2015, "Understanding image representations by measuring their
// equivariance and equivalence".
//
// Let f(x) be the feature maps of a layer, with the vector f(x)_p of all channels at position p,
// and tau the action of the transformation T on positions, as in package measure/equivariance. The
// maps of T(x) are predicted in up to four ways:
//
//	identity  f(x)_p                   nothing changes
//	place     (tau f(x))_p             values move with the input
//	channels  M f(x)_p + m             channels are mixed, at the same position
//	both      M (tau f(x))_p + m       values move, and channels are mixed
//
// M and m are fitted by ridge regression, one for all positions and samples. The statistic is the
// fraction of the variance that is explained on samples that M was not fitted on,
//
//	r2 = 1 - sum |f(Tx)_p - prediction|^2 / sum |f(Tx)_p - mean|^2,
//
// with the mean of each channel over the samples of the fit and their positions. The sums are over
// folds, samples, and the positions that lie inside the map, without its margin, before and after
// T. Folds consist of whole jackknife groups of samples
// (see measure.Layout), and each is left out of one fit. The sufficient statistics of a fold are
// the second moments of channels, so samples are not stored.
//
// Where T moves no positions, or positions do not form a grid of rows and columns, there are the
// operators identity and channels only. A layer without positions has one position.
package latent

import (
	"fmt"
	"math/rand/v2"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/internal/action"
	"github.com/noether-ml/noether/tensor"
)

// Settings configure the measure.
type Settings struct {
	Ridge  float64 `key:"ridge" json:"ridge" default:"0.001" min:"0" max:"1000" doc:"penalty of the fit, relative to the mean variance of a channel"`
	Folds  int     `key:"folds" json:"folds" default:"5" min:"2" max:"20" doc:"number of parts of the samples, each of which is predicted from a fit to the others"`
	Margin float64 `key:"margin" json:"margin" default:"0" min:"0" max:"0.45" doc:"fraction of the sides of a map that is left out at its border"`
}

// New returns the measure latent-operator. Folds or Ridge out of range is an error.
func New(s Settings) (measure.Measure, error) {
	switch {
	case s.Folds < 2 || s.Folds > measure.MaxGroups:
		return nil, fmt.Errorf("folds is %d: it must be between 2 and %d", s.Folds, measure.MaxGroups)
	case !(s.Ridge >= 0):
		return nil, fmt.Errorf("ridge is %v: it must be at least 0", s.Ridge)
	}
	return &method{settings: s, fields: &action.Cache{}}, nil
}

type method struct {
	settings Settings
	fields   *action.Cache // the actions tau (action.Field), which accumulators share
}

func (*method) Name() string                   { return "latent-operator" }
func (*method) Descriptor() measure.Descriptor { return Descriptor() }
func (m *method) Settings() any                { return m.settings }
func (*method) Needs() measure.Needs           { return measure.Needs{Transformed: true} }

// Version is 2 with a margin, which version 1 ignored where no positions move.
func (m *method) Version() int {
	if m.settings.Margin > 0 {
		return 2
	}
	return 1
}

type setup struct {
	maps           tensor.Maps
	movesPositions bool // whether T moves positions, so that there are four operators
	plane          bool // positions are on a grid of h rows and w columns
	h, w           int
	foldCount      int
	fields         *action.Cache // the actions tau
	margin         float64       // Settings.Margin
	ridge          float64       // Settings.Ridge
}

// setup returns the setup of a site, or why it cannot be measured. Axes NC are a batch of vectors.
func (m *method) setup(s measure.Site) (out setup, why string) {
	out = setup{foldCount: min(m.settings.Folds, s.Layout.Groups), fields: m.fields, margin: m.settings.Margin, ridge: m.settings.Ridge}
	if string(s.Layer.Axes) == "NC" && len(s.Layer.Shape) == 1 && s.Layer.Shape[0] > 0 {
		out.maps = tensor.Maps{Channels: s.Layer.Shape[0], Grid: []int{1}, ChannelStep: 1, PositionStep: 1}
	} else if out.maps, why = s.Layer.Maps(); why != "" {
		return out, why
	}
	out.h, out.w, out.plane = out.maps.Size()
	if s.Motion != nil && out.plane {
		move := s.Motion(rand.New(rand.NewPCG(1, 1)))
		_, known := measure.PointMapOf(move, out.h, out.w)
		out.movesPositions = known && move != nil
	}
	return out, ""
}

func (m *method) Skip(s measure.Site) string {
	setup, why := m.setup(s)
	if why != "" {
		return why
	}
	if s.Layout.Groups < 2 {
		return "there are too few samples for two folds"
	}
	if need := setup.bytes(); s.Budget > 0 && need > s.Budget {
		return fmt.Sprintf("the moments of %d channels take %d MiB, more than the study's memory", setup.maps.Channels, need>>20)
	}
	return ""
}

func (m *method) Cost(s measure.Site) int64 {
	setup, why := m.setup(s)
	if why != "" {
		return 0
	}
	return setup.bytes()
}

func (s setup) bytes() int64 {
	c := int64(s.maps.Channels)
	one := 8 * (c*(2*c+1) + 2*c + 2) // a linalg.Scatter of 2 c variables
	if s.movesPositions {
		one *= 2
	}
	return int64(s.foldCount) * one
}

// Borrowed implements measure.Borrower. It counts the buffers same and moved, tau f(x) of a sample,
// and two tiles of package linalg. A buffer takes samples until it has blockRows rows, and append
// reserves up to a quarter more.
func (m *method) Borrowed(s measure.Site) int64 {
	setup, why := m.setup(s)
	if why != "" {
		return 0
	}
	const tile = 1024 // side of the tiles of package linalg
	c, p := int64(setup.maps.Channels), int64(setup.maps.Positions())
	return 4*(2*2*c*(blockRows+p)*5/4+c*p) + 2*4*tile*tile
}

func (m *method) New(s measure.Site) (measure.Accumulator, error) {
	setup, why := m.setup(s)
	if why != "" {
		return nil, fmt.Errorf("latent-operator cannot measure layer %q: %s", s.Layer.Name, why)
	}
	return newAccumulator(setup, s), nil
}

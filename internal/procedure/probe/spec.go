package probe

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"

	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A probeSpec describes one probe to train on the vectors of a layer. A probe with shuffled targets
// (targetSample) shows what chance alone gives.
type probeSpec struct {
	name          string      // unique in a job, one run of a measure on a model and its data
	kind          string      // SLP (one linear layer), MLP or Ridge (least squares with an L2 penalty)
	hidden        []int       // sizes of the hidden layers of an MLP
	seed          uint64      // of the initial weights and the order of samples
	input         *probeInput // the vectors that it predicts from
	target        *target     // the number or class to predict; nil if targetVectors is set
	targetVectors *probeInput // the vectors to predict
	targetSample  []int       // for each sample, the index of the sample whose target it gets; nil: its own

	train, validation []int // indices of samples
}

// embeddingDim is the number of dimensions to which a linear layer maps probeInput.condition.
const embeddingDim = 32

// target.classes is 0 if the target is a number.
func (p *probeSpec) outputs() int {
	switch {
	case p.targetVectors != nil:
		return p.targetVectors.dim()
	case p.target.classes > 0:
		return p.target.classes
	}
	return 1
}

// network returns the untrained probe: x, batch x width, to y, batch x outputs. With a condition,
// the last component of x is the parameter; dim is the width without it.
func (p *probeSpec) network() (*onnx.Model, error) {
	net, err := p.perceptron()
	if n := p.codes(); err == nil && n > 0 {
		return asPositions(net, n, p.outputs()/n)
	}
	return net, err
}

// codes returns the number of codes of each position of the target; 0: it is no code.
func (p *probeSpec) codes() int {
	if p.targetVectors == nil {
		return 0
	}
	return len(p.targetVectors.codebook)
}

func (p *probeSpec) perceptron() (*onnx.Model, error) {
	var hidden []int
	if p.kind == MLP {
		hidden = p.hidden
	}
	sizes := func(in int) []int { return append(append([]int{in}, hidden...), p.outputs()) }
	if p.input.condition == nil || p.kind == Ridge {
		return train.MLP(p.seed, sizes(p.input.width())...)
	}
	d := p.input.dim()
	embed, err := train.MLP(p.seed+1, 1, embeddingDim) // a seed other than that of rest
	if err != nil {
		return nil, err
	}
	rest, err := train.MLP(p.seed, sizes(d+embeddingDim)...)
	if err != nil {
		return nil, err
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, d+1)
	z, parameter := b.Slice(x, 1, 0, d, 1), b.Slice(x, 1, d, d+1, 1)
	e := b.Scope("embedding").Include(embed, map[string]onnx.Value{"x": parameter})[0]
	b.Output("y", b.Scope("probe").Include(rest, map[string]onnx.Value{"x": b.Concat(1, z, e)})[0])
	return b.Model()
}

func (p *probeSpec) loss() train.Loss {
	switch {
	case p.codes() > 0:
		return train.PositionCrossEntropy
	case p.target != nil && p.target.classes > 0:
		return train.CrossEntropy
	}
	return train.SquaredError
}

// targetOf returns the sample whose target is used for sample i.
func (p *probeSpec) targetOf(i int) int {
	if p.targetSample == nil {
		return i
	}
	return p.targetSample[i]
}

// identity returns a hash of everything that the trained probe depends on.
func (p *probeSpec) identity(t *Training) string {
	h := sha256.New()
	fmt.Fprintf(h, "probe 1\n%s\n%s %v %d %d\n%g %g %d %d %d\n", p.input.id, p.kind, p.hidden, p.seed, p.outputs(), t.Rate, t.Decay, t.Batch, t.Epochs, t.Patience)
	for _, part := range [][]int{p.train, p.validation} {
		hashInts(h, part)
		for _, i := range part {
			p.hashTarget(h, p.targetOf(i))
			if p.input.condition != nil {
				hashFloat(h, float64(p.input.condition[i]))
			}
		}
	}
	if p.targetVectors != nil {
		fmt.Fprintln(h, p.targetVectors.id)
	}
	return "probe " + hex.EncodeToString(h.Sum(nil))
}

// Target vectors are identified by the sample's index.
func (p *probeSpec) hashTarget(h hash.Hash, i int) {
	switch {
	case p.targetVectors != nil:
		hashFloat(h, float64(i))
	case p.target.classes > 0:
		hashFloat(h, float64(p.target.class[i]))
	default:
		hashFloat(h, p.target.value[i])
	}
}

func hashFloat(h hash.Hash, v float64) {
	h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
}

func hashInts(h hash.Hash, v []int) {
	for _, i := range v {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(i)))
	}
}

type source struct {
	*probeSpec
	samples []int       // indices of the samples
	batch   train.Batch // memory that each batch reuses
}

func (s *source) Len() int { return len(s.samples) }

// Batch implements train.Source. places are indices into s.samples.
func (s *source) Batch(_ context.Context, places []int) (train.Batch, error) {
	n := len(places)
	s.batch.Inputs = []tensor.Tensor{resized(first(s.batch.Inputs), n, s.input.width())}
	x := s.batch.Inputs[0]
	vectors := s.targetVectors != nil || s.target.classes == 0
	switch codes := s.codes(); {
	case codes > 0:
		s.batch.Masks = tensor.New(n, s.outputs()/codes, 1)
	case vectors:
		s.batch.Target = resized(s.batch.Target, n, s.outputs())
	}
	s.batch.Classes = s.batch.Classes[:0]
	for k, place := range places {
		i := s.samples[place]
		if err := s.input.row(x.At(k).Data, i); err != nil {
			return train.Batch{}, err
		}
		t := s.targetOf(i)
		switch {
		case s.codes() > 0:
			codes, err := s.targetVectors.codes(t)
			if err != nil {
				return train.Batch{}, err
			}
			for j, c := range codes {
				s.batch.Masks.At(k).Data[j] = float32(c)
			}
		case s.targetVectors != nil:
			if err := s.targetVectors.row(s.batch.Target.At(k).Data, t); err != nil {
				return train.Batch{}, err
			}
		case vectors:
			s.batch.Target.Data[k] = float32(s.target.value[t])
		default:
			s.batch.Classes = append(s.batch.Classes, s.target.class[t])
		}
	}
	return s.batch, nil
}

func first(list []tensor.Tensor) tensor.Tensor {
	if len(list) == 0 {
		return tensor.Tensor{}
	}
	return list[0]
}

// resized returns n x width in the memory of t, if that is large enough.
func resized(t tensor.Tensor, n, width int) tensor.Tensor {
	if cap(t.Data) < n*width {
		return tensor.New(n, width)
	}
	return tensor.Tensor{Shape: []int{n, width}, Data: t.Data[:n*width]}
}

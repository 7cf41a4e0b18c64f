package probe

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/train"
)

// A problem is one probe to train.
type problem struct {
	name    string // tells it from all others of the job
	kind    string
	hidden  []int
	seed    uint64
	in      *probeInput
	want    *target     // what is to come out, or
	to      *probeInput // the vectors that are
	partner []int       // the sample whose target stands for that of each sample: shuffled; nil: its own

	train, validation []int
}

// embedding is the number of dimensions that a parameter is embedded in.
const embedding = 32

// outputs is how many numbers the probe gives.
func (p *problem) outputs() int {
	switch {
	case p.to != nil:
		return p.to.dim()
	case p.want.classes > 0:
		return p.want.classes
	}
	return 1
}

// network is the probe with the weights that it starts from. Its input x is batch x width.
func (p *problem) network() (*onnx.Model, error) {
	var hidden []int
	if p.kind == MLP {
		hidden = p.hidden
	}
	sizes := func(in int) []int { return append(append([]int{in}, hidden...), p.outputs()) }
	if p.in.condition == nil || p.kind == Ridge {
		return train.MLP(p.seed, sizes(p.in.width())...)
	}
	d := p.in.dim()
	embed, err := train.MLP(p.seed+1, 1, embedding)
	if err != nil {
		return nil, err
	}
	rest, err := train.MLP(p.seed, sizes(d+embedding)...)
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

func (p *problem) loss() train.Loss {
	if p.want != nil && p.want.classes > 0 {
		return train.CrossEntropy
	}
	return train.SquaredError
}

// targetOf is the sample whose target a sample has.
func (p *problem) targetOf(i int) int {
	if p.partner == nil {
		return i
	}
	return p.partner[i]
}

// identity hashes all that the trained probe depends on.
func (p *problem) identity(t *Training) string {
	h := sha256.New()
	fmt.Fprintf(h, "probe 1\n%s\n%s %v %d %d\n%g %g %d %d %d\n", p.in.id, p.kind, p.hidden, p.seed, p.outputs(), t.Rate, t.Decay, t.Batch, t.Epochs, t.Patience)
	for _, part := range [][]int{p.train, p.validation} {
		hashInts(h, part)
		for _, i := range part {
			p.hashTarget(h, p.targetOf(i))
			if p.in.condition != nil {
				hashFloat(h, float64(p.in.condition[i]))
			}
		}
	}
	if p.to != nil {
		fmt.Fprintln(h, p.to.id)
	}
	return "probe " + hex.EncodeToString(h.Sum(nil))
}

func (p *problem) hashTarget(h hash.Hash, i int) {
	switch {
	case p.to != nil:
		hashFloat(h, float64(i))
	case p.want.classes > 0:
		hashFloat(h, float64(p.want.class[i]))
	default:
		hashFloat(h, p.want.value[i])
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

// A source feeds some samples of a problem to its training.
type source struct {
	*problem
	samples []int
	batch   train.Batch
}

func (s *source) Len() int { return len(s.samples) }

// Batch implements train.Source.
func (s *source) Batch(_ context.Context, places []int) (train.Batch, error) {
	n := len(places)
	s.batch.Inputs = []tensor.Tensor{resized(first(s.batch.Inputs), n, s.in.width())}
	x := s.batch.Inputs[0]
	vectors := s.to != nil || s.want.classes == 0
	if vectors {
		s.batch.Target = resized(s.batch.Target, n, s.outputs())
	}
	s.batch.Classes = s.batch.Classes[:0]
	for k, place := range places {
		i := s.samples[place]
		if err := s.in.row(x.At(k).Data, i); err != nil {
			return train.Batch{}, err
		}
		t := s.targetOf(i)
		switch {
		case s.to != nil:
			if err := s.to.row(s.batch.Target.At(k).Data, t); err != nil {
				return train.Batch{}, err
			}
		case vectors:
			s.batch.Target.Data[k] = float32(s.want.value[t])
		default:
			s.batch.Classes = append(s.batch.Classes, s.want.class[t])
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

// resized is a tensor of n x width that takes the memory of t where that is large enough.
func resized(t tensor.Tensor, n, width int) tensor.Tensor {
	if cap(t.Data) < n*width {
		return tensor.New(n, width)
	}
	return tensor.Tensor{Shape: []int{n, width}, Data: t.Data[:n*width]}
}

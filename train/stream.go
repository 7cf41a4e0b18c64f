package train

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Stream learns from a data set of any size: samples are decoded, and moved where that is asked for, on other
// goroutines while earlier ones are being learnt from, within a bound on memory.
type Stream struct {
	Data dataset.Source
	// Preprocess is what samples are brought to: its frame, then, after Augment, its mean and deviation.
	Preprocess model.Preprocess
	// Augment moves each sample, drawn by the seed, the epoch and the sample. Evaluation sees samples as they are. Optional.
	Augment transform.Transform
	Seed    uint64
	// Factor is the factor of variation that is the target, b x 1; empty: classes are.
	Factor string
	Read   dataset.ReadOptions

	batch Batch
}

// Len implements Source.
func (s *Stream) Len() int { return s.Data.Len() }

// Batch implements Source: samples as they are.
func (s *Stream) Batch(ctx context.Context, places []int) (Batch, error) {
	for b, err := range s.Batches(ctx, 0, places, len(places)) {
		return b, err
	}
	return Batch{}, fmt.Errorf("a batch has no samples")
}

// Batches implements Streaming.
func (s *Stream) Batches(ctx context.Context, epoch int, places []int, size int) iter.Seq2[Batch, error] {
	var src dataset.Source = s.Data
	if s.Augment != nil && epoch > 0 {
		src = &augmented{s.Data, s.Augment, s.Seed, epoch}
	}
	return func(yield func(Batch, error) bool) {
		s.clear()
		for sample, err := range dataset.Read(ctx, src, places, s.Preprocess.Frame, s.Read) {
			if err == nil {
				err = s.add(sample, size)
			}
			if err != nil {
				yield(Batch{}, err)
				return
			}
			if s.batch.len() == size {
				if !yield(s.batch, nil) {
					return
				}
				s.clear()
			}
		}
		if s.batch.len() > 0 {
			yield(s.batch, nil)
		}
	}
}

// clear empties the batch and keeps its memory.
func (s *Stream) clear() {
	s.batch.Classes = s.batch.Classes[:0]
	for _, t := range s.batch.tensors() {
		t.Data = t.Data[:0]
		t.Shape[0] = 0
	}
}

// tensors are what grows with the batch.
func (b *Batch) tensors() []*tensor.Tensor {
	var list []*tensor.Tensor
	for i := range b.Inputs {
		list = append(list, &b.Inputs[i])
	}
	if b.Target.Rank() > 0 {
		list = append(list, &b.Target)
	}
	return list
}

// add puts a sample behind those of the batch.
func (s *Stream) add(sample dataset.Sample, size int) error {
	b := &s.batch
	if len(b.Inputs) == 0 {
		b.Inputs = []tensor.Tensor{{Shape: append([]int{0}, sample.Input.Shape...), Data: make([]float32, 0, size*sample.Input.Len())}}
	}
	x := &b.Inputs[0]
	if !slices.Equal(x.Shape[1:], sample.Input.Shape) {
		return fmt.Errorf("%s has the shape %v, and samples before it %v: bring them to one size", sample.Name, sample.Input.Shape, x.Shape[1:])
	}
	at := len(x.Data)
	x.Data = append(x.Data, sample.Input.Data...)
	if err := s.normalise(x.Data[at:], sample.Input); err != nil {
		return err
	}
	x.Shape[0]++
	if s.Factor == "" {
		if sample.Label == dataset.NoLabel {
			return fmt.Errorf("%s has no label to learn", sample.Name)
		}
		b.Classes = append(b.Classes, sample.Label)
		return nil
	}
	v, ok := sample.Factors[s.Factor]
	if !ok {
		return fmt.Errorf("%s has no factor %q to learn", sample.Name, s.Factor)
	}
	if b.Target.Rank() == 0 {
		b.Target.Shape = []int{0, 1}
	}
	b.Target.Data = append(b.Target.Data, float32(v))
	b.Target.Shape[0]++
	return nil
}

// normalise brings a sample, which is in dst already, to the values that the network takes.
func (s *Stream) normalise(dst []float32, sample tensor.Tensor) error {
	p := s.Preprocess
	if p.Mean == nil && p.Std == nil && p.Order != "bgr" && p.Range == [2]float32{} && !p.Standardise {
		return nil
	}
	var err error
	if sample.Rank() == 2 {
		err = p.CheckAudio()
	} else {
		err = p.Check(sample.Shape[0])
	}
	if err == nil {
		p.Normalise(dst, sample)
	}
	return err
}

// augmented is a source whose samples are moved.
type augmented struct {
	dataset.Source
	how   transform.Transform
	seed  uint64
	epoch int
}

// At implements dataset.Source.
func (a *augmented) At(ctx context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	s, err := a.Source.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	s.Input, err = s.Apply(a.how.Draw(seed.Rand(a.seed, "train: augmentation", a.epoch, s.Index)))
	return s, err
}

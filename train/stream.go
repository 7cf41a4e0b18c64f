package train

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Stream is a Source that reads a data set of any size. Samples are decoded and augmented on
// other goroutines while training runs, within bounded memory.
type Stream struct {
	Data dataset.Source
	// Preprocess holds the frame in which samples are read. Its mean and standard deviation are
	// applied after Augment.
	Preprocess model.Preprocess
	// Augment transforms each sample. Draws depend on the seed, the epoch and the sample.
	// Evaluation does not augment. Optional.
	Augment transform.Transform
	Seed    uint64
	// Factor is the factor of variation used as the target, b x 1; "": the labels are the targets.
	Factor string
	Read   dataset.ReadOptions

	batch Batch
}

// Len implements Source.
func (s *Stream) Len() int { return s.Data.Len() }

// Batch implements Source. Samples are not augmented.
func (s *Stream) Batch(ctx context.Context, indices []int) (Batch, error) {
	for b, err := range s.Batches(ctx, 0, indices, len(indices)) {
		return b, err
	}
	return Batch{}, errors.New("the batch has no samples")
}

// Batches yields the samples with the given indices, in order, in batches of the given size. The
// next batch overwrites the last. Epochs count from 1; epoch 0 does not augment.
func (s *Stream) Batches(ctx context.Context, epoch int, indices []int, size int) iter.Seq2[Batch, error] {
	var src dataset.Source = s.Data
	if s.Augment != nil && epoch > 0 {
		src = &augmented{s.Data, s.Augment, s.Seed, epoch}
	}
	return func(yield func(Batch, error) bool) {
		s.clear()
		for sample, err := range dataset.Read(ctx, src, indices, s.Preprocess.Frame, s.Read) {
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

// tensors returns the tensors that grow with the batch.
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

// add appends a sample to the batch.
func (s *Stream) add(sample dataset.Sample, size int) error {
	b := &s.batch
	if len(b.Inputs) == 0 {
		b.Inputs = []tensor.Tensor{{Shape: append([]int{0}, sample.Input.Shape...), Data: make([]float32, 0, size*sample.Input.Len())}}
	}
	x := &b.Inputs[0]
	if !slices.Equal(x.Shape[1:], sample.Input.Shape) {
		return fmt.Errorf("%s has shape %v, and earlier samples %v: resize them to one size", sample.Name, sample.Input.Shape, x.Shape[1:])
	}
	at := len(x.Data)
	x.Data = append(x.Data, sample.Input.Data...)
	if err := s.normalise(x.Data[at:], sample.Input); err != nil {
		return err
	}
	x.Shape[0]++
	if s.Factor == "" {
		if sample.Label == dataset.NoLabel {
			return fmt.Errorf("%s has no label", sample.Name)
		}
		b.Classes = append(b.Classes, sample.Label)
		return nil
	}
	v, ok := sample.Factors[s.Factor]
	if !ok {
		return fmt.Errorf("%s has no factor %q", sample.Name, s.Factor)
	}
	if b.Target.Rank() == 0 {
		b.Target.Shape = []int{0, 1}
	}
	b.Target.Data = append(b.Target.Data, float32(v))
	b.Target.Shape[0]++
	return nil
}

// normalise applies mean and standard deviation to a sample that has been copied to dst.
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

// An augmented source transforms its samples.
type augmented struct {
	dataset.Source
	transform transform.Transform
	seed      uint64
	epoch     int
}

// At implements dataset.Source.
func (a *augmented) At(ctx context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	s, err := a.Source.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	s.Input, err = s.Apply(a.transform.Draw(seed.Rand(a.seed, "train: augmentation", a.epoch, s.Index)))
	return s, err
}

package proceduretest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/tensor"
)

// faulty is a data set of three samples. It maps the index of a sample to the error of reading it.
type faulty map[int]error

func (faulty) Len() int            { return 3 }
func (faulty) Classes() []string   { return nil }
func (faulty) Factors() []string   { return nil }
func (faulty) Fingerprint() string { return "" }
func (s faulty) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	return dataset.Sample{Index: i, Input: tensor.New(1)}, s[i]
}

// TestJobReads checks that a job (one run of a measure on a data set, here without a model) leaves
// out bad samples when it reads those at some positions, keeps the order of the others, and returns
// any other error.
func TestJobReads(t *testing.T) {
	t.Parallel()
	bad := faulty{1: &dataset.BadSample{Err: errors.New("no image")}}
	got, err := Job(procedure.Subject{}, bad).Read(t.Context(), []int{2, 1, 0}, dataset.Frame{})
	var indices []int
	for _, s := range got {
		indices = append(indices, s.Index)
	}
	if err != nil || !slices.Equal(indices, []int{2, 0}) {
		t.Errorf("read samples %v, error %v; want samples 2 and 0", indices, err)
	}
	diskError := errors.New("disk failure")
	if _, err := Job(procedure.Subject{}, faulty{2: diskError}).Read(t.Context(), []int{0, 1, 2}, dataset.Frame{}); !errors.Is(err, diskError) {
		t.Errorf("error %v, want the disk failure", err)
	}
}

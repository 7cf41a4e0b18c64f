package measuretest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/tensor"
)

// spoilt are three samples, of which some give an error.
type spoilt map[int]error

func (spoilt) Len() int            { return 3 }
func (spoilt) Classes() []string   { return nil }
func (spoilt) Factors() []string   { return nil }
func (spoilt) Fingerprint() string { return "" }
func (s spoilt) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	return dataset.Sample{Index: i, Input: tensor.New(1)}, s[i]
}

// A job reads what can be read, in the order that was asked for, and any other error ends it.
func TestJobReads(t *testing.T) {
	t.Parallel()
	bad := spoilt{1: &dataset.BadSample{Err: errors.New("no image")}}
	got, err := Job(procedure.Subject{}, bad).Read(t.Context(), []int{2, 1, 0}, dataset.Frame{})
	var at []int
	for _, s := range got {
		at = append(at, s.Index)
	}
	if err != nil || !slices.Equal(at, []int{2, 0}) {
		t.Errorf("samples %v are read, %v", at, err)
	}
	gone := errors.New("the disk is gone")
	if _, err := Job(procedure.Subject{}, spoilt{2: gone}).Read(t.Context(), []int{0, 1, 2}, dataset.Frame{}); !errors.Is(err, gone) {
		t.Errorf("an error that is no sample's: %v", err)
	}
}

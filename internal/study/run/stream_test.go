package run

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/spec"
)

// TestDataThatEndEarly checks the error where a data set gives fewer samples than it announced,
// with and without a cancelled context. A sampleReader reads the samples of a pass, one reading of
// a data set, here in batches of 1. Its function next gives a sample, an error, and false at the
// end.
func TestDataThatEndEarly(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{t.Context(), io.ErrUnexpectedEOF}, {cancelled, stopped}} {
		data := &plan.Data{Entry: spec.Data{Name: "photos"}}
		f := &feeder{Pass: plan.TimingPass(nil, data, 1)}
		ended := func() (dataset.Sample, error, bool) { return dataset.Sample{}, nil, false }
		r := &sampleReader{feeder: f, ctx: c.ctx, next: []func() (dataset.Sample, error, bool){ended}}
		_, err := r.sample()
		if !errors.Is(err, c.want) || c.want != stopped && !strings.Contains(err.Error(), "data photos") {
			t.Errorf("error %v, want %v", err, c.want)
		}
	}
}

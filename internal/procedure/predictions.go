package procedure

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
)

// CorrectPredictions reports for each sample whether the model of s predicts its label. The samples
// must have been read in the frame of the model (Model.Frame), the part and size of an image that
// it gets. Labels are indices into Subject.Outputs or, if that is nil, into the model's outputs.
// NaN or infinity in the class scores is an error.
func CorrectPredictions(ctx context.Context, s Subject, samples []dataset.Sample) ([]bool, error) {
	session, err := s.Model.NewSession(nil, true) // no layers, only class scores
	if err != nil {
		return nil, err
	}
	defer session.Close()
	const batch = 32
	buf, err := session.NewBuffers(min(len(samples), batch))
	if err != nil {
		return nil, err
	}
	correct := make([]bool, len(samples))
	for at := 0; at < len(samples); at += buf.Cap() {
		end := min(at+buf.Cap(), len(samples))
		var images []tensor.Tensor
		for _, sample := range samples[at:end] {
			images = append(images, sample.Input)
		}
		if err := session.Run(ctx, images, buf); err != nil {
			return nil, err
		}
		logs, err := buf.LogProbs(s.Outputs)
		if err != nil {
			return nil, err
		}
		for i := range end - at {
			row := logs.At(i)
			if row.FirstNonFinite() >= 0 {
				return nil, fmt.Errorf("model %s: the class scores of %s contain NaN or infinity", s.Name, samples[at+i].Name)
			}
			correct[at+i] = IsLargest(row.Data, samples[at+i].Label)
		}
	}
	return correct, nil
}

// IsLargest reports whether v[at] is the first of the largest values; false for an index out of
// range, such as that of a sample without a label.
func IsLargest(v []float32, at int) bool {
	if at < 0 || at >= len(v) {
		return false
	}
	for i, x := range v {
		if x > v[at] || x == v[at] && i < at {
			return false
		}
	}
	return true
}

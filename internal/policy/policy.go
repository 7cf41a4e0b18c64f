// Package policy judges the models of a run for a stated use: whether they keep to a loss of
// accuracy under transformations up to given strengths, for all samples and for each group.
//
//	p, err := policy.Read("policy.yaml")
//	verdicts, err := p.Judge(evidence)
//
// A policy makes claims, such as "of the samples of site A, rotated by 10 degrees, the model int8
// has at most 2 % fewer right than float". Each has a value with a 95 % interval, and a limit:
//
//   - a model passes if every claim holds with its whole interval. Since all must hold, the
//     probability that a model passes although one does not is at most 2.5 %, whatever their number;
//   - it fails if some claim does not hold with its whole interval at level 1 - 0.05 / k, for k
//     claims on the model (Bonferroni): one that fails by chance is not enough;
//   - else there are not enough data, and each undecided claim says how many samples would decide it
//     if its value stays (with probability 80 %).
package policy

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/scores"
)

// A Policy is what a policy file states.
type Policy struct {
	Use        string              `key:"use,required" doc:"the use for which the models are judged, in a sentence"`
	Models     []string            `key:"models" doc:"models that are judged; not given: all but the reference"`
	Reference  string              `key:"reference" doc:"model that the others replace: their loss is against it, on the same samples"`
	Data       []string            `key:"data" doc:"data that count; not given: all"`
	Transforms map[string]Strength `key:"transforms" doc:"for each transformation by its name in the study the strength up to which the claims are made, the distance of its parameter from the value that changes nothing; all: at all values"`
	Score      string              `key:"score" default:"accuracy.moved" doc:"MEASURE.STATISTIC of the loss, a mean over samples"`
	Loss       *float64            `key:"loss" doc:"how much worse the score may be than the reference's; without a reference, than the model's own accuracy on clean data"`
	Least      *float64            `key:"least" doc:"value that the score must reach (or, where lower is better, not exceed)"`
	Groups     []string            `key:"groups" doc:"properties from the study's key by: the claims are made for each group too"`
	Keep       []string            `key:"keep" doc:"tolerances of other scores, such as effective-invariance.ei@tilt >= 0.8"`

	file       string             // name of the file
	selector   scores.Selector    // of Score
	tolerances []scores.Tolerance // of Keep
}

// A Strength is a number, or infinite for "all".
type Strength float64

// DecodeNode reads a strength.
func (s *Strength) DecodeNode(n *config.Node) error {
	if text, err := n.Scalar(); err == nil && text == "all" {
		*s = Strength(math.Inf(1))
		return nil
	}
	v, err := n.Number()
	if err != nil || v < 0 {
		return n.Errorf("a strength is a number from 0, or all")
	}
	*s = Strength(v)
	return nil
}

// Read reads a policy file.
func Read(path string) (*Policy, error) {
	data, err := config.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the text of a policy file; errors name path.
func Parse(path string, data []byte) (*Policy, error) {
	node, err := config.Parse(path, data, nil)
	if err != nil {
		return nil, err
	}
	p := &Policy{file: filepath.Base(path)}
	if err := config.Decode(node, p); err != nil {
		return nil, err
	}
	if p.selector, err = scores.ParseSelector(p.Score); err != nil || p.selector.Transform != "" || p.selector.Layer != "" {
		return nil, node.Get("score").Errorf("score is %q: write MEASURE.STATISTIC, such as accuracy.moved; its transformations stand under transforms", p.Score)
	}
	for i, text := range p.Keep {
		t, err := scores.ParseTolerance(text)
		if err != nil {
			return nil, node.Get("keep").Errorf("keep: %v", err)
		}
		if t.Relative {
			return nil, node.Get("keep").Errorf("keep: %s is relative: give a number, or state the loss of accuracy by the key loss", p.Keep[i])
		}
		p.tolerances = append(p.tolerances, t)
	}
	switch {
	case p.Loss == nil && p.Least == nil && len(p.Keep) == 0:
		return nil, node.Errorf("the policy states no limit: give loss, least or keep")
	case p.Loss != nil && *p.Loss < 0:
		return nil, node.Get("loss").Errorf("loss is %v: it is at least 0", *p.Loss)
	case p.Loss != nil && p.Reference == "" && p.Score != "accuracy.moved":
		return nil, node.Get("loss").Errorf("a loss of %s needs a reference: only accuracy has a value on clean data", p.Score)
	case slices.Contains(p.Models, p.Reference) && p.Reference != "":
		return nil, node.Get("models").Errorf("model %s is the reference, and cannot be judged against itself", p.Reference)
	}
	return p, nil
}

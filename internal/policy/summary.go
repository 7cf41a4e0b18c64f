package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/plural"
)

// SummaryFile is the name of the file of a run folder with the verdict.
const SummaryFile = "verdict.json"

// A Summary is what a policy says of the models of a run, in the form of verdict.json.
type Summary struct {
	Run string `json:"run,omitempty"` // checksum of the run's record, run.json
	// Policy is the name of the policy's file.
	Policy string `json:"policy,omitempty"`
	Use    string `json:"use"`
	// Reference is the model that the others replace; "": none.
	Reference string         `json:"reference,omitempty"`
	Score     string         `json:"score,omitempty"` // MEASURE.STATISTIC of the losses
	Models    []ModelSummary `json:"models"`
}

// A ModelSummary is the verdict on a model.
type ModelSummary struct {
	Model string `json:"model"`
	State State  `json:"state"`
	// HoldsUpTo is, for each transformation with strengths, the largest one up to which all claims
	// hold; 0: there is none.
	HoldsUpTo map[string]float64 `json:"holds_up_to"`
	Claims    []ClaimSummary     `json:"claims"` // those that fail first, then the undecided ones
}

// A ClaimSummary is a claim with its evidence.
type ClaimSummary struct {
	State     State   `json:"state"`
	Text      string  `json:"claim"`
	Data      string  `json:"data"`
	Transform string  `json:"transform"`
	Parameter string  `json:"parameter"`
	Group     string  `json:"group"`
	Value     *Number `json:"value"` // null: not known
	Low       *Number `json:"low"`
	High      *Number `json:"high"`
	N         int     `json:"n"`
	Limit     *Number `json:"limit"`
	Needed    int     `json:"needed"`
	Why       string  `json:"why"`
	Where     string  `json:"where"`
	Evidence  string  `json:"evidence"`
}

// A Number is finite.
type Number float64

func finite(v float64) *Number {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return new(Number(v))
}

// LossOf is how the text of a claim on a loss begins.
const LossOf = "loss of "

// Summarise returns the verdicts in the form of verdict.json.
func (p *Policy) Summarise(verdicts []Verdict) Summary {
	s := Summary{Policy: p.file, Use: p.Use, Reference: p.Reference, Score: p.Score, Models: []ModelSummary{}}
	for _, v := range verdicts {
		m := ModelSummary{Model: v.Model, State: v.State, HoldsUpTo: v.HoldsUpTo, Claims: []ClaimSummary{}}
		for _, c := range v.Claims {
			m.Claims = append(m.Claims, ClaimSummary{c.State, c.Text, c.Data, c.Transform, c.Parameter, c.Group, finite(c.Mean), finite(c.Low), finite(c.High),
				c.N, finite(c.Limit), c.Needed, c.Why, c.Where(), c.Evidence()})
		}
		s.Models = append(s.Models, m)
	}
	return s
}

// Name returns the use with the name of the policy's file.
func (s *Summary) Name() string {
	return strings.Join(slices.DeleteFunc([]string{s.Policy, s.Use}, func(t string) bool { return t == "" }), ": ")
}

// ParseSummary reads verdict.json.
func ParseSummary(data []byte) (*Summary, error) {
	s := &Summary{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if s.Use == "" || len(s.Models) == 0 {
		return nil, fmt.Errorf("it has no use or no models")
	}
	return s, nil
}

// Counts returns a sentence on how many claims hold, and up to which strengths.
func (m *ModelSummary) Counts() string {
	n := map[State]int{}
	for _, c := range m.Claims {
		n[c.State]++
	}
	text := fmt.Sprintf("%d of %s hold", n[Pass], plural.Of(len(m.Claims), "claim"))
	if n[Fail] > 0 {
		text += fmt.Sprintf(", %d do not", n[Fail])
	}
	if n[Undecided] > 0 {
		text += fmt.Sprintf(", %d undecided", n[Undecided])
	}
	var up, none []string // transformations with the strength up to which all claims hold, and without one
	for _, transform := range slices.Sorted(maps.Keys(m.HoldsUpTo)) {
		if strength := m.HoldsUpTo[transform]; strength > 0 {
			up = append(up, fmt.Sprintf("%s %v", transform, strength))
		} else {
			none = append(none, transform)
		}
	}
	switch {
	case len(up) > 0 && len(none) > 0:
		text += ". All hold up to " + strings.Join(up, ", ") + ", and at no strength of " + strings.Join(none, ", ")
	case len(up) > 0:
		text += ". All hold up to " + strings.Join(up, ", ")
	case len(none) > 0:
		text += ". At no strength of " + strings.Join(none, ", ") + " do all hold"
	}
	return text + "."
}

// Deciding returns the first of the claims that do not hold or are not decided, at most n.
func (m *ModelSummary) Deciding(n int) []ClaimSummary {
	open := slices.IndexFunc(m.Claims, func(c ClaimSummary) bool { return c.State == Pass })
	if open < 0 {
		open = len(m.Claims)
	}
	return m.Claims[:min(n, open)]
}

package robust

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/noether-ml/noether/internal/autoattack"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
)

// A standard is a run of the standard version of AutoAttack: the attacks of package autoattack, one
// after the other, each on the samples that are still robust.
type standard struct {
	*run
	attacks  []autoattack.Attack
	classes  int
	progress []progress // of each sample
	reported int64      // the progress of the run
	saved    time.Time
}

// A progress tells how far the attacks on a sample are, and what they have found.
type progress struct {
	attack, part int // the next part
	state        autoattack.State
	passes       int  // forward passes that the part has taken so far
	by           int  // index + 1 of the attack that has broken the sample; 0: none
	flat         bool // the gradient was zero at the start of a part
	random       bool // two computations of the class scores of x differ
}

// classLosses are the losses of attacks with gradients.
var classLosses = map[autoattack.Loss]invert.ClassLoss{
	autoattack.CrossEntropy: invert.CrossEntropy, autoattack.TargetedDLR: invert.TargetedDLR,
	autoattack.Difference: invert.Difference,
}

// standardWork is the largest cost of a sample, in forward passes: all parts of all attacks.
func standardWork(classes int) int64 {
	total := 0
	for _, a := range autoattack.Standard() {
		total += a.Parts(classes) * partWork(a)
	}
	return int64(total)
}

func partWork(a autoattack.Attack) int {
	forward, gradients := a.Passes()
	return forward + gradientWork*gradients
}

// classes returns the number of classes of the predictions of a subject.
func classes(s procedure.Subject) int {
	if s.Outputs != nil {
		return len(s.Outputs)
	}
	return s.Model.Classes()
}

func (r *run) standard(ctx context.Context) (*standard, error) {
	s := &standard{run: r, attacks: autoattack.Standard(), classes: classes(r.job.A),
		progress: make([]progress, len(r.samples)), saved: time.Now()}
	if err := state.Load(r.job.Checkpoint, standardKind, standardVersion, s.Code); err != nil {
		return nil, err
	}
	for i, a := range s.attacks {
		err := s.attack(ctx, i)
		switch {
		case ctx.Err() != nil:
			return nil, errors.Join(ctx.Err(), s.save())
		case err != nil:
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	return s, nil
}

// attack runs an attack on the samples that are still robust and that it has not finished.
func (s *standard) attack(ctx context.Context, attack int) error {
	var rows []int
	for i, p := range s.progress {
		if s.withstood[i] && p.attack == attack {
			rows = append(rows, i)
		}
	}
	a := s.attacks[attack]
	if len(rows) == 0 || a.Parts(s.classes) == 0 {
		for _, row := range rows {
			s.progress[row].attack++
		}
		return nil
	}
	p, err := s.openPool(a, len(rows))
	if err != nil {
		return err
	}
	defer p.close()
	return p.run(ctx, len(rows), func(k int) *worker {
		row := rows[k]
		return p.start(s.samples[row].Label, &s.progress[row].passes, func(n autoattack.Network) error {
			return s.attackSample(n, attack, row)
		})
	}, func() error { return s.pause(attack) })
}

// attackSample runs the remaining parts of an attack on a sample, until one breaks it.
func (s *standard) attackSample(n autoattack.Network, attack, row int) error {
	a, p, k, x := s.attacks[attack], &s.progress[row], s.job.Key, s.samples[row]
	problem := autoattack.Problem{Image: x.Input.Data, Shape: [3]int(s.job.A.Model.ImageShape()),
		Label: x.Label, Ball: s.settings.options().Ball}
	var err error
	if problem.Scores, err = n.Scores(problem.Image); err != nil {
		return err
	}
	if attack == 0 {
		again, err := n.Scores(problem.Image)
		if err != nil {
			return err
		}
		p.random = differ(problem.Scores, again)
	}
	by := 0
	if !procedure.IsLargest(problem.Scores, x.Label) { // a network with random numbers
		by = attack + 1
	}
	for ; by == 0 && p.part < a.Parts(s.classes); p.part++ {
		next := p.state // a part that does not end leaves no trace
		draw := seed.Rand(k.Seed, "robust: "+a.Name, k.Data, k.Trial, x.Index, p.part)
		result, err := a.Run(n, problem, p.part, draw, &next)
		if err != nil {
			return err
		}
		p.state, p.passes, p.flat = next, 0, p.flat || result.Flat
		s.dropped[row] = s.dropped[row] || result.NonFinite
		if result.Broken {
			by = attack + 1
		}
	}
	s.withstood[row] = by == 0
	*p = progress{attack: attack + 1, by: by, flat: p.flat, random: p.random}
	return nil
}

// differ reports whether the class scores of two computations differ by more than rounding: by
// 1e-4 of their norm, as in the authors' check for random networks.
func differ(a, b []float32) bool {
	var sum, difference float64
	for i, v := range a {
		d := float64(v) - float64(b[i])
		sum, difference = sum+float64(v)*float64(v), difference+d*d
	}
	return !(math.Sqrt(difference) <= 1e-4*math.Sqrt(sum))
}

const saveEvery = 15 * time.Second

// pause reports the progress and saves the state if that is due.
func (s *standard) pause(attack int) error {
	done, robust := s.done()
	s.job.Progress(done, fmt.Sprintf("%s: %d of %d robust", s.attacks[attack].Name, robust, len(s.progress)))
	if time.Since(s.saved) < saveEvery {
		return nil
	}
	return s.save()
}

// done returns the progress out of Work, which never falls, and the number of samples that are
// robust so far. Broken samples take no further work. So the progress is the share of the work so far
// in that and what the robust samples take if none of them is broken: a time extrapolated from it is
// not too short.
func (s *standard) done() (done int64, robust int) {
	total := standardWork(s.classes)
	spent, left := int64(len(s.progress)), int64(0) // the predictions
	for i, p := range s.progress {
		current := p.attack
		if !s.withstood[i] {
			current = max(p.by-1, 0)
		}
		var own int64
		for _, a := range s.attacks[:current] {
			own += int64(a.Parts(s.classes) * partWork(a))
		}
		if s.withstood[i] {
			if current < len(s.attacks) {
				work := partWork(s.attacks[current])
				own += int64(p.part*work + min(p.passes, work))
			}
			robust++
			left += total - own
		}
		spent += own
	}
	all := int64(len(s.progress)) * (1 + total)
	s.reported = max(s.reported, int64(float64(all)*float64(spent)/float64(spent+left)))
	return s.reported, robust
}

// scores returns the accuracies, and the fraction of the samples that each attack has
// broken.
func (s *standard) scores() []measure.Score {
	out := s.run.scores()
	n, flat, random := len(s.progress), 0, 0
	broken := make([]int, len(s.attacks))
	for _, p := range s.progress {
		if p.by > 0 {
			broken[p.by-1]++
		}
		if p.flat {
			flat++
		}
		if p.random {
			random++
		}
	}
	warn := func(format string, args ...any) {
		out[0].Warnings = append(out[0].Warnings, fmt.Sprintf(format, args...))
	}
	if flat > 0 {
		warn("the gradient of %s is zero where an attack starts: attacks by gradients say little of them", plural.Of(flat, "sample"))
	}
	if random > 0 {
		warn("the class scores of %s differ between two computations: AutoAttack's standard version is not meant for networks with random numbers", plural.Of(random, "sample"))
	}
	for i, a := range s.attacks {
		if a.Parts(s.classes) == 0 {
			warn("%s needs at least 4 classes, and there are %d: it did not run", a.Name, s.classes)
			continue
		}
		if a.Loss == autoattack.None && float64(broken[i]) > maskingShare*float64(n) {
			warn("%s, without gradients, broke %s that attacks by gradients had not: these may fail on this network, and robustness be overestimated", a.Name, plural.Of(broken[i], "sample"))
		}
		score := fraction("broken", broken[i], n)
		score.Variant = a.Name
		out = append(out, score)
	}
	return out
}

// maskingShare is the part of the samples broken by Square from which the authors' check warns.
const maskingShare = 0.002

// The checkpoint of a standard, as for stateKind.
const (
	standardKind    = "autoattack"
	standardVersion = 1
)

func (s *standard) save() error {
	s.saved = time.Now()
	return state.Save(s.job.Checkpoint, standardKind, standardVersion, s.Code)
}

// Code implements state.Coder.
func (s *standard) Code(c *state.Codec) {
	if !c.Matches(len(s.progress)) || !c.Matches(s.classes) { // the set of readable samples has changed
		return
	}
	for i := range s.progress {
		p := &s.progress[i]
		c.Values(&s.withstood[i], &s.dropped[i], &p.attack, &p.part, &p.by, &p.flat, &p.random, &p.state.Image, &p.state.Margin)
		attacks, image := len(s.attacks), len(s.samples[i].Input.Data)
		c.Check(p.attack >= 0 && p.attack <= attacks && p.by >= 0 && p.by <= attacks &&
			p.part >= 0 && (p.part == 0 || p.attack < attacks && p.part < s.attacks[p.attack].Parts(s.classes)) &&
			(len(p.state.Image) == 0 || len(p.state.Image) == image),
			"sample %d: attack %d, part %d, broken by %d, with an image of %d values", i, p.attack, p.part, p.by, len(p.state.Image))
	}
}

package firing

import (
	"context"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
)

// New returns the measure firing, with the statistics invariance, local-rate, global-rate and
// selective for each layer, and those of Settings.Also. It returns an error if a setting is
// invalid.
func New(s Settings) (procedure.Procedure, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &firing{s}, nil
}

type firing struct{ settings Settings }

func (*firing) Name() string { return "firing" }

func (m *firing) Descriptor() measure.Descriptor { return descriptor(m.settings.Rate) }

func (*firing) Version() int { return 3 }

func (m *firing) Settings() any { return m.settings }

// Needs asks for a transformation, or for data whose samples form trajectories, such as gratings.
// Same pairs each layer with itself.
func (*firing) Needs() procedure.Needs {
	return procedure.Needs{Transform: true, OwnTrajectories: true, Layers: measure.PairSame}
}

func (m *firing) Skip(j *procedure.Job) string { return m.skipReason(j) }

func (m *firing) Work(j *procedure.Job) int64 { return m.forwardPasses(j) }

func (m *firing) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	r, err := m.start(j)
	if err != nil {
		return nil, err
	}
	err = r.run(ctx)
	if err != nil && ctx.Err() != nil {
		if saving := r.save(); saving != nil {
			return nil, saving
		}
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return r.scores(), nil
}

package probe

import (
	"errors"
	"fmt"
	"sync"

	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
)

// A trainerPool keeps trainers for probes of the same architecture: preparing one takes as long as
// dozens of its steps. It is safe for concurrent use.
type trainerPool struct {
	capacity int // largest number of idle trainers

	mutex sync.Mutex
	idle  []trainer // in the order in which they were returned
}

type trainer struct {
	architecture string
	*train.Trainer
}

// architecture is equal for probes whose graphs differ only in their weights.
func (p *probeSpec) architecture() string {
	return fmt.Sprint(p.kind, p.hidden, p.input.width(), p.input.condition != nil, p.outputs(), p.codes(), p.loss().Name)
}

// get returns an idle trainer, restarted with the weights of net, or else the result of create.
func (l *trainerPool) get(architecture string, net *onnx.Model, create func() (*train.Trainer, error)) (*train.Trainer, error) {
	if t := l.find(architecture); t != nil {
		if err := t.Restart(net); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		return t, nil
	}
	return create()
}

func (l *trainerPool) find(architecture string) *train.Trainer {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for i, t := range l.idle {
		if t.architecture == architecture {
			l.idle = append(l.idle[:i:i], l.idle[i+1:]...)
			return t.Trainer
		}
	}
	return nil
}

// put closes the trainer that has been idle longest if there are too many.
func (l *trainerPool) put(architecture string, t *train.Trainer) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.idle = append(l.idle, trainer{architecture, t})
	if len(l.idle) <= l.capacity {
		return nil
	}
	oldest := l.idle[0]
	l.idle = l.idle[1:]
	return oldest.Close()
}

func (l *trainerPool) close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var errs []error
	for _, t := range l.idle {
		errs = append(errs, t.Close())
	}
	l.idle = nil
	return errors.Join(errs...)
}

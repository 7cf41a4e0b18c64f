package probe

import (
	"errors"
	"fmt"
	"sync"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/train"
)

// A trainerPool keeps the trainers of finished probes for other probes of the same form: preparing
// a trainer takes as long as dozens of its steps. It is safe for concurrent use.
type trainerPool struct {
	capacity int // largest number of idle trainers

	mutex sync.Mutex
	idle  []trainer // in the order in which they were returned
}

// A trainer is a train.Trainer for probes of a form.
type trainer struct {
	form string
	*train.Trainer
}

// form returns a string that is the same for probes whose graphs differ only in their weights.
func (p *probeSpec) form() string {
	return fmt.Sprint(p.kind, p.hidden, p.input.width(), p.input.condition != nil, p.outputs(), p.loss().Name)
}

// get returns an idle trainer of a form, restarted with the weights of net. If there is none, it
// returns the result of make.
func (l *trainerPool) get(form string, net *onnx.Model, make func() (*train.Trainer, error)) (*train.Trainer, error) {
	if t := l.find(form); t != nil {
		if err := t.Restart(net); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		return t, nil
	}
	return make()
}

func (l *trainerPool) find(form string) *train.Trainer {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for i, t := range l.idle {
		if t.form == form {
			l.idle = append(l.idle[:i:i], l.idle[i+1:]...)
			return t.Trainer
		}
	}
	return nil
}

// put returns a trainer to the pool. If there are too many, the one that has been idle longest is
// closed.
func (l *trainerPool) put(form string, t *train.Trainer) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.idle = append(l.idle, trainer{form, t})
	if len(l.idle) <= l.capacity {
		return nil
	}
	oldest := l.idle[0]
	l.idle = l.idle[1:]
	return oldest.Close()
}

// close closes all idle trainers.
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

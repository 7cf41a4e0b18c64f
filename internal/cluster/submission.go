package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A Record is the content of cluster.json: the submissions of a run folder.
type Record struct {
	Version     int          `json:"version"` // of the file format, see recordVersion
	Study       string       `json:"study"`   // name of the study
	Submissions []Submission `json:"submissions"`
}

// recordVersion is increased when older programs would misread cluster.json.
const recordVersion = 1

// A Submission is a study divided into tasks, and the jobs that run them.
type Submission struct {
	Number    int        `json:"number"`    // from 1; its files are in the folder cluster/NUMBER
	Scheduler string     `json:"scheduler"` // "slurm" or "kubernetes"
	Created   time.Time  `json:"created"`
	Profile   Profile    `json:"profile"`
	Python    bool       `json:"python,omitempty"` // the study runs functions of Python
	Costs     []Cost     `json:"costs"`            // by which the study was divided
	Tasks     []Task     `json:"tasks"`            // task n is the n-th, from 1
	Jobs      []Job      `json:"jobs,omitempty"`
	Cancelled *time.Time `json:"cancelled,omitempty"` // when Cancel was called; nil: not cancelled
}

// A Job is a job array of some of the tasks, and its merge.
type Job struct {
	ID        string    `json:"id"`    // of the job array, as the scheduler gave it
	Tasks     []int     `json:"tasks"` // numbers of its tasks
	Merge     string    `json:"merge"` // ID of the merge job; "" if it was not submitted
	Submitted time.Time `json:"submitted"`
}

// Read reads the record of a run folder. If nothing was submitted, the error wraps fs.ErrNotExist.
func Read(run string) (*Record, error) {
	path := filepath.Join(run, "cluster.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("nothing was submitted from %s: %w", run, err)
	}
	if err != nil {
		return nil, err
	}
	r, err := parseRecord(raw)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return r, nil
}

func parseRecord(raw []byte) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, err
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("version %d is not supported: this program reads version %d", r.Version, recordVersion)
	}
	for i, s := range r.Submissions {
		if s.Number != i+1 {
			return nil, fmt.Errorf("submission %d has the number %d", i+1, s.Number)
		}
		for _, t := range s.Tasks {
			if len(t.Models) == 0 || t.Shard.Index < 0 || t.Shard.Index > t.Shard.Count {
				return nil, fmt.Errorf("submission %d has a task without models, or with shard %d/%d", s.Number, t.Shard.Index, t.Shard.Count)
			}
		}
		for _, j := range s.Jobs {
			for _, n := range j.Tasks {
				if _, err := s.task(n); err != nil {
					return nil, fmt.Errorf("job %s: %w", j.ID, err)
				}
			}
		}
	}
	return r, nil
}

// write writes the record into a run folder.
func (r *Record) write(run string) error {
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(run, "cluster.json"), string(raw)+"\n")
}

// Submission returns the submission with a number; 0: the last.
func (r *Record) Submission(number int) (*Submission, error) {
	if number == 0 {
		number = len(r.Submissions)
	}
	if number < 1 || number > len(r.Submissions) {
		return nil, fmt.Errorf("submission %d does not exist: there are %d", number, len(r.Submissions))
	}
	return &r.Submissions[number-1], nil
}

// folder returns a path within the folder of a submission.
func folder(run string, number int, elem ...string) string {
	return filepath.Join(append([]string{run, "cluster", strconv.Itoa(number)}, elem...)...)
}

// task returns a task by its number, counted from 1.
func (s *Submission) task(number int) (Task, error) {
	if number < 1 || number > len(s.Tasks) {
		return Task{}, fmt.Errorf("submission %d has no task %d; it has %d", s.Number, number, len(s.Tasks))
	}
	return s.Tasks[number-1], nil
}

// New returns the record of a run folder with a new submission added, and that submission. It
// creates the submission's folders, but neither writes the record nor submits anything.
func New(run, study string, s Submission) (*Record, *Submission, error) {
	r, err := Read(run)
	if errors.Is(err, fs.ErrNotExist) {
		r, err = &Record{Version: recordVersion, Study: study}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s.Number, s.Created = len(r.Submissions)+1, time.Now().UTC()
	for _, sub := range []string{"tasks", "logs"} {
		if err := os.MkdirAll(folder(run, s.Number, sub), 0o777); err != nil {
			return nil, nil, err
		}
	}
	r.Submissions = append(r.Submissions, s)
	return r, &r.Submissions[len(r.Submissions)-1], nil
}

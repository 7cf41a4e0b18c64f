package procedure

import (
	"fmt"
	"strings"
)

// A Checker is a Procedure whose settings name factors, known properties of samples such as hue, or
// values of factors. Before a job starts, it can check whether the data have them. A Procedure is a
// measure that works in steps on samples in memory, and a job is one run of it on a model and data.
type Checker interface {
	// Check returns an *Unknown, or nil. It reads no samples.
	Check(j *Job) error
}

// An Unknown is the error for a setting with a name that does not exist.
type Unknown struct {
	Key   []string // path of the setting, such as test, factor
	What  string   // the kind of name, such as factor
	Name  string
	Known []string // the valid names
	// OtherData reports whether the setting applies to all data sets of the study, so that the name
	// may be known for other data than those of the job.
	OtherData bool
}

func (e *Unknown) Error() string {
	return fmt.Sprintf("%s: unknown %s %q: it must be one of %s", strings.Join(e.Key, "."), e.What, e.Name, strings.Join(e.Known, ", "))
}

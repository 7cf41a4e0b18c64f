package procedure

import (
	"fmt"
	"strings"
)

// A Checker is a Procedure whose settings name factors or their values. Before a job starts, it can
// check whether the data have them.
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
	// OtherData: the setting applies to all data sets of the study, so another may know the name.
	OtherData bool
}

func (e *Unknown) Error() string {
	return fmt.Sprintf("%s: unknown %s %q: it must be one of %s", strings.Join(e.Key, "."), e.What, e.Name, strings.Join(e.Known, ", "))
}

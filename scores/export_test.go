package scores

// Unexported functions that the tests, of package scores_test, call.
var (
	OverValues = overValues
	OverTrials = overTrials
	ScanCell   = scanCell
)

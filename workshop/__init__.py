"""What makes and measures the course: `build`, `bench`, `mutants`. `course_utils` never imports it."""

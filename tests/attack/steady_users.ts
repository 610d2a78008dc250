// Users of the tenant who does nothing wrong, for its calls and for the scene, which gives them a plan.

/** The users that most of its calls are about. */
export const STEADY_USERS: readonly string[] = Array.from({ length: 50 }, (_, no) => `user_${no}`);

/** The users whom the tenant who does nothing wrong calls about most. */
export const STEADY_USERS: readonly string[] = Array.from({ length: 50 }, (_, no) => `user_${no}`);
